"""What the program calls its memory pools: torch gives a `MemPool` and a CUDA graph's pool a number and no name."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from oomscope.recording.census import roots as places
from oomscope.recording.census.paths import instance_dict

_MOST = 64
"""Pools that are named; each takes a search among all objects where no running call has it."""
_SEARCHED = 8
_STEPS = 3
"""From a local variable to a pool: ``engines['chat'].graphs[8]``."""
_LOOKED_AT = 500
"""Objects at each step, of one call; and what of one container is looked at."""
_WITHIN = 64
_GRAPHS = ("CUDAGraph", "XPUGraph")
_KINDS = ("MemPool", *_GRAPHS)


def pool_rows(modules: Iterable[Any]) -> list[dict[str, Any]]:
    """The dump's ``pools``: torch's id of each pool that Python holds, the way to it, and whether graphs alone hold it.

    Args:
        modules: where torch keeps the classes of pools and graphs: ``torch.cuda``, ``torch.xpu``.
    """
    kinds = tuple(
        kind for module in modules for name in _KINDS if isinstance(kind := getattr(module, name, None), type)
    )
    objects = gc.get_objects() if kinds else []
    # By type alone: an object may answer `isinstance` with code of its own.
    met = {kind for kind in set(map(type, objects)) if issubclass(kind, kinds)}
    held = [item for item in objects if type(item) in met]
    del objects
    names = _Names(held)
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    # A pool that the program made itself goes by that name, not by that of a graph which was captured into it.
    for item in sorted(islice(held, _MOST), key=_is_graph):
        pool = _id_of(item)
        if pool is None:
            continue
        row = rows.setdefault(
            pool, {"pool": list(pool), "name": None, "kind": "graph" if _is_graph(item) else "mempool"}
        )
        if row["name"] is None:
            row["name"] = names.of(item)
    return list(rows.values())


def _is_graph(item: Any) -> bool:
    return any(kind.__name__ in _GRAPHS for kind in type(item).__mro__)


def _id_of(item: Any) -> tuple[int, int] | None:
    try:
        first, second = item.pool() if hasattr(item, "pool") else item.id
    except Exception:  # a graph that captured nothing has no pool yet
        return None
    return (int(first), int(second)) if first or second else None


class _Names:
    """Ways to objects from the calls that run, and from modules and objects that hold them."""

    def __init__(self, wanted: list[Any]) -> None:
        self._wanted = {id(item) for item in wanted}
        self._found: dict[int, str] = {}
        self._searches = 0
        if wanted:
            for frame in (frame for stack in places.thread_frames() for frame in stack):
                self._look_into(places.function_name(frame), places.local_variables(frame))

    def _look_into(self, function: str, variables: dict[str, Any]) -> None:
        level = [(f"{function}: {name}", value) for name, value in variables.items()]
        for _ in range(_STEPS + 1):
            for words, value in level:
                if id(value) in self._wanted:
                    self._found.setdefault(id(value), words)
            if len(self._found) == len(self._wanted):
                return
            inner = ((f"{words}{step}", one) for words, value in level for step, one in _within(value))
            level = list(islice(inner, _LOOKED_AT))

    def of(self, item: Any) -> str | None:
        """The way to `item`; None where none is short enough to be told."""
        if id(item) not in self._found and self._searches < _SEARCHED:
            self._searches += 1
            if (words := next(_held_by(item), None)) is not None:
                self._found[id(item)] = words
        return self._found.get(id(item))


def _within(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object or a container holds, each with the step to it."""
    if type(value) is dict:
        for key, one in islice(list(value.items()), _WITHIN):
            if type(key) in (str, int):
                yield f"[{key!r}]", one
    elif type(value) in (list, tuple):
        for at, one in enumerate(value[:_WITHIN]):
            yield f"[{at}]", one
    elif not isinstance(value, (types.ModuleType, type)):
        for name, one in islice(list((instance_dict(value) or {}).items()), _WITHIN):
            yield f".{name}", one


def _held_by(item: Any, within: str = "") -> Iterator[str]:
    """Ways to `item` from a module's global or an object's attribute, through one list or tuple at most."""
    for holder in gc.get_referrers(item):
        if type(holder) in (list, tuple) and not within:
            yield from _held_by(holder, f"[{next(at for at, one in enumerate(holder) if one is item)}]")
        elif type(holder) is dict:
            yield from _through_dict(holder, item, within)
        elif not isinstance(holder, types.FrameType) and (key := _key_of(instance_dict(holder), item)) is not None:
            yield f"{type(holder).__name__}.{key}{within}"


def _through_dict(holder: dict[Any, Any], item: Any, within: str) -> Iterator[str]:
    """Where `holder` is a module's globals, or an object's own attributes."""
    key = _key_of(holder, item)
    if key is None:
        return
    if isinstance(module := holder.get("__name__"), str) and "__builtins__" in holder:
        yield f"{module}: {key}{within}"
    for owner in gc.get_referrers(holder):
        if type(owner) not in (dict, list) and instance_dict(owner) is holder:
            yield f"{type(owner).__name__}.{key}{within}"


def _key_of(holder: dict[Any, Any] | None, item: Any) -> str | None:
    found = (name for name, value in list((holder or {}).items()) if value is item and isinstance(name, str))
    return next(found, None)
