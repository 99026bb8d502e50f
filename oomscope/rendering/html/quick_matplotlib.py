"""Matplotlib loaded without what its classes tell `help`, for a process that shows nobody its help."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_SOLID = "mpl_toolkits.mplot3d"


def load_matplotlib() -> None:
    """Load what the figures need in half of the time.

    As it loads, matplotlib writes a table of all properties into the docstrings of a hundred classes, and makes a
    signature of all their setters for ``set``; it also loads what draws solids. This leaves that out, so it is for our
    own command line only: in somebody's notebook `help` would be the poorer for it, and solids could not be drawn.
    """
    if "matplotlib.axes" in sys.modules:
        return
    from matplotlib import artist

    told = "_update_set_signature_and_docstring"
    without: list[tuple[Any, str, Any]] = [(artist, "kwdoc", lambda artist: "")]  # noqa: ARG005 - its type has this name
    if told in vars(artist.Artist):  # a name of its own, which another release may not have
        without.append((artist.Artist, told, classmethod(lambda cls: None)))  # noqa: ARG005 - the same
    real = [(owner, name, vars(owner)[name]) for owner, name, _ in without]
    no_solids = ModuleType(_SOLID)
    no_solids.Axes3D = None  # type: ignore[attr-defined]
    is_stood_in_for = sys.modules.setdefault(_SOLID, no_solids) is no_solids
    try:
        for owner, name, nothing in without:
            setattr(owner, name, nothing)
        import matplotlib.figure  # noqa: F401
    finally:
        for owner, name, value in real:
            setattr(owner, name, value)
        if is_stood_in_for:
            del sys.modules[_SOLID]
