"""Matplotlib loaded without what our figures never ask for, for a process that shows nobody its help."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

_SOLID = "mpl_toolkits.mplot3d"
_LATER = (
    "pyparsing", "matplotlib._fontconfig_pattern", "matplotlib._mathtext",  # formulas, fonts described in one text
    "matplotlib.dviread",  # what TeX has set
    "matplotlib.backends.backend_agg", "PIL.Image", "PIL.PngImagePlugin",  # pixels
    "dateutil.parser",  # dates in texts
)  # fmt: skip
"""A third of the time that matplotlib takes to load, for figures without any of these."""


def load_matplotlib() -> None:
    """Load what the figures need in a third of the time.

    As it loads, matplotlib writes tables of properties and examples into the docstrings of its classes, and makes a
    signature of all their setters for ``set``; it also loads what draws solids, and whatever may be in a figure. This
    leaves the first two out, so it is for our own command line only: in somebody's notebook `help` would be the poorer
    for it, and solids could not be drawn. The rest is loaded when it is asked for.
    """
    if "matplotlib.axes" in sys.modules:
        return
    no_solids = ModuleType(_SOLID)
    no_solids.Axes3D = type("Axes3D", (), {"name": "3d"})  # type: ignore[attr-defined]  # enough to be listed
    try:
        with _stood_in_for([no_solids]), _later(_LATER):
            _load_without_help()
    except Exception:  # another release may ask more of a stand-in: then all of it is loaded, by whoever imports it
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            del sys.modules[name]


def _load_without_help() -> None:
    from matplotlib import _docstring, artist

    told = "_update_set_signature_and_docstring"
    without: list[tuple[Any, str, Any]] = [(artist, "kwdoc", lambda artist: "")]  # noqa: ARG005 - its type has this name
    without += [
        (owner, "__call__", lambda self, described: described)  # noqa: ARG005 - the same
        for owner in (_docstring.Substitution, type(_docstring.interpd))
    ]
    if told in vars(artist.Artist):  # a name of its own, which another release may not have
        without.append((artist.Artist, told, classmethod(lambda cls: None)))  # noqa: ARG005 - the same
    with _replaced(without):
        import matplotlib.backends.backend_svg
        import matplotlib.figure  # noqa: F401


@contextmanager
def _replaced(without: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Have owners hold another value under a name for as long."""
    real = [(owner, name, vars(owner)[name]) for owner, name, _ in without]
    try:
        for owner, name, value in without:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in real:
            setattr(owner, name, value)


@contextmanager
def _stood_in_for(modules: list[ModuleType]) -> Iterator[None]:
    """Have `modules` imported in the place of those of the same names that are not loaded yet."""
    placed = [module for module in modules if sys.modules.setdefault(module.__name__, module) is module]
    try:
        yield
    finally:
        for module in placed:
            del sys.modules[module.__name__]


@contextmanager
def _later(names: tuple[str, ...]) -> Iterator[None]:
    """Have the modules `names` loaded when something of them is first used after this."""
    modules = [_Later(name) for name in names if name not in sys.modules]
    with _stood_in_for(list(modules)):
        yield
    for module in modules:
        module.is_ready = True
        package, _, name = module.__name__.rpartition(".")
        if package in sys.modules:  # where ``import package.name`` would have put it
            vars(sys.modules[package]).setdefault(name, module)


class _Later(ModuleType):
    """Stands in for a module that is loaded when something of it is first used.

    Attributes:
        is_ready: whether that may be now; until then, names are given out that stand in for what they name.
    """

    __version__ = "9999"  # for matplotlib, which asks whether it is recent enough

    is_ready = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name) if self.is_ready else _Named(self, name)


class _Named:
    """Stands in for a function or class of a module that is loaded later.

    Where matplotlib calls it while it loads (to see whether fonts are described well), nothing happens.
    """

    def __init__(self, module: _Later, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return getattr(self._module, self._name)(*arguments, **named) if self._module.is_ready else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(getattr(self._module, self._name), name) if self._module.is_ready else _Named(self._module, name)
