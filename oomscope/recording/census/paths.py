"""How one object is reached from another, in the words of the program: ``.blocks``, ``[2]``, ``['cache']``."""

from __future__ import annotations

import functools
import gc
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.roots import function_name, local_variables

_FRAMES = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame", types.AsyncGeneratorType: "ag_frame"}
SUSPENDABLE = tuple(_FRAMES)
_CACHE = type(functools.lru_cache(len))
_LONGEST_KEY = 40
_MOST_STEPS = 8
_MEMBERS = ("_modules", "_parameters", "_buffers")


class Paths:
    """Steps between objects. Dicts that only hold an object's attributes are seen through."""

    def __init__(self) -> None:
        self._attributes: set[int] = set()  # ids of instances' __dict__
        self._members: set[int] = set()  # ids of a module's _modules and its like
        self._closures: dict[int, types.FunctionType] = {}
        self._positions: dict[int, dict[int, str]] = {}

    def step(self, parent: Any, child: Any) -> str:
        """What leads from `parent` to `child`, to be put behind what leads to `parent`; empty where nothing is said."""
        if type(child) is dict and instance_dict(parent) is child:
            self._attributes.add(id(child))
            return ""
        if is_a(parent, types.FunctionType) and parent.__closure__ is child:
            self._closures[id(child)] = parent
            return ""
        if type(parent) is type(child) is types.FrameType:
            return ""  # from a call that has ended to its caller, which says where it stands by itself
        positions = self._positions.get(id(parent))
        if positions is None:
            positions = self._positions[id(parent)] = {id(value): name for name, value in self._parts(parent)}
        return positions.get(id(child), " (lru_cache)" if is_cache(parent) else f".<{type(parent).__name__}>")

    def _parts(self, parent: Any) -> Iterable[tuple[str, Any]]:
        """Every part of `parent` with the step to it; of parts that are one object, the last stands."""
        kind = type(parent)
        if is_a(parent, dict):
            return self._dict_parts(parent)
        if id(parent) in self._closures:
            names = self._closures[id(parent)].__code__.co_freevars
            return [(f" (closure) {name}", cell) for name, cell in zip(names, parent, strict=False)]
        if is_a(parent, (list, tuple, deque)):
            return [(f"[{index}]", value) for index, value in enumerate(parent)]
        if is_a(parent, (set, frozenset)):
            return [("{…}", value) for value in parent]
        if kind is types.CellType:
            return [("", parent.cell_contents)]
        if kind is types.MethodType:
            return [(".__self__", parent.__self__)]
        if is_a(parent, BaseException):
            names = ("__traceback__", "__context__", "__cause__")
            return [(f".{name}", getattr(parent, name)) for name in names] + _attributes(parent)
        if kind is types.TracebackType:
            return [("", parent.tb_next), ("", parent.tb_frame)]
        return _frame_parts(parent) or _attributes(parent)

    def _dict_parts(self, parent: dict[Any, Any]) -> Iterable[tuple[str, Any]]:
        if id(parent) in self._members:
            return [(f"[{key}]" if str(key).isdigit() else f".{key}", value) for key, value in parent.items()]
        if id(parent) not in self._attributes:
            values = [(f"[{_short(key)}]", value) for key, value in parent.items()]
            return [*(("{key}", key) for key in parent), *values]
        self._members.update(id(parent[key]) for key in _MEMBERS if type(parent.get(key)) is dict)
        return [("" if key in _MEMBERS else f".{key}", value) for key, value in parent.items()]


def is_cache(item: Any) -> bool:
    """Whether this is what `functools.lru_cache` makes of a function."""
    return type(item) is _CACHE


def _frame_parts(parent: Any) -> list[tuple[str, Any]]:
    """The locals of a function that has ended (kept by a traceback) or is suspended."""
    frame = frame_of(parent)
    if frame is None:
        return []
    variables = local_variables(frame)
    where = f" → {function_name(frame)}: "
    parts = [(where + name, value) for name, value in variables.items()]
    names = {id(value): name for name, value in variables.items()}
    # A variable that an inner function uses too is in a cell.
    cells = [item for item in gc.get_referents(parent) if type(item) is types.CellType]
    return parts + [(where + name, cell) for cell in cells if (name := names.get(id(_contents(cell)))) is not None]


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def frame_of(item: Any) -> types.FrameType | None:
    """The frame that this is, or that a suspended call will go on in."""
    if is_a(item, types.FrameType):
        frame: types.FrameType = item
        return frame
    return next((getattr(item, name) for kind, name in _FRAMES.items() if is_a(item, kind)), None)


def _attributes(parent: Any) -> list[tuple[str, Any]]:
    found = []
    for cls in type(parent).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if is_a(slots, str) else tuple(slots):
            try:
                found.append((f".{name}", object.__getattribute__(parent, name)))
            except AttributeError:
                continue
    found.extend((f".{name}", value) for name, value in (instance_dict(parent) or {}).items())
    return found


def instance_dict(parent: Any) -> dict[str, Any] | None:
    """An object's own attributes, past any ``__getattribute__`` of its class."""
    try:
        attributes = object.__getattribute__(parent, "__dict__")
    except (AttributeError, TypeError):
        return None
    return attributes if type(attributes) is dict else None


def _short(key: Any) -> str:
    if not is_a(key, (str, int, float, bool, bytes, tuple, type(None))):
        return f"<{type(key).__name__}>"
    text = repr(key) if not is_a(key, tuple) else "(…)"
    return text if len(text) <= _LONGEST_KEY else text[: _LONGEST_KEY - 1] + "…"


def join(start: str, steps: list[str]) -> str:
    """A root's words and the steps from it; the middle of a long way is left out."""
    said = [step for step in steps if step]
    if len(said) > _MOST_STEPS:
        said = [*said[: _MOST_STEPS // 2], " … ", *said[-_MOST_STEPS // 2 :]]
    return start + "".join(said)
