"""Attributes of the program's own objects that no code which may still run asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, MemberDescriptorType
from typing import Any, NamedTuple

from oomscope.recording.census.heap import Heap
from oomscope.recording.census.holding import Holding
from oomscope.recording.census.remaining import is_librarys, is_programs, stored_names

_OPTIMIZED = 0x1
_MOST_IDLE = 1000


class Idle(NamedTuple):
    """Nodes: the object, what refers to the value (the object, or the dict of its attributes), the value; its name."""

    owner: int
    parent: int
    value: int
    name: str


def find_idle(
    holding: Holding, heap: Heap, frames: Iterable[FrameType], asked: Callable[[], frozenset[str] | None]
) -> list[Idle]:
    """The attributes in the graph that are not asked for again; none where that cannot be told.

    Args:
        holding: who refers to whom.
        heap: where functions and who refers to them are looked up.
        frames: of the running calls.
        asked: tells the names that code which may still run asks for; None where that cannot be told.
    """
    functions = heap.of_types({FunctionType})
    scripts = [frame.f_code for frame in frames if not frame.f_code.co_flags & _OPTIMIZED]
    stored = stored_names(functions, scripts)
    owners = _owners(holding, stored)
    if not owners:
        return []
    read = asked()
    if read is None:
        return []
    return [one for node in owners for one in _idle_of(holding, node, stored - read)][:_MOST_IDLE]


@contextmanager
def without(holding: Holding, idle: Iterable[Idle]) -> Iterator[None]:
    """The graph without the references that such attributes make."""
    whole = {one.parent: holding.children[one.parent] for one in idle}
    for parent, children in whole.items():
        left = list(children)
        for one in idle:
            if one.parent == parent and one.value in left:
                left.remove(one.value)  # once: another attribute may refer to the same
        holding.children[parent] = left
    try:
        yield
    finally:
        for parent, children in whole.items():
            holding.children[parent] = children


def _owners(holding: Holding, stored: set[str]) -> list[int]:
    """The program's own functions, and objects of its classes, that refer to something in the graph."""
    known: dict[type, bool] = {}
    found = []
    for node, item in enumerate(holding.objects):
        cls = type(item)
        if cls not in known:
            known[cls] = not is_librarys(cls) and not cls.__module__.startswith("oomscope.")
        is_own = known[cls] or (cls is FunctionType and is_programs(item.__code__))
        if is_own and holding.children[node] and stored:
            found.append(node)
    return found


def _idle_of(holding: Holding, node: int, names: set[str]) -> Iterator[Idle]:
    item = holding.objects[node]
    for name in sorted(names - _known_to_class(type(item))):
        # Not by its __dict__, which would be made by asking for it.
        try:
            value = id(object.__getattribute__(item, name))
        except AttributeError:
            continue
        child = holding.numbers.get(value)
        parent = None if child is None else _parent(holding, node, child)
        if child is not None and parent is not None:
            yield Idle(node, parent, child, name)


def _known_to_class(cls: type) -> set[str]:
    """What a class answers itself, and what the code of libraries that it is made from asks for."""
    members = [(name, type(value)) for base in cls.__mro__ for name, value in vars(base).items()]
    # A plain value is a default; a slot is where the value is.
    found = {name for name, kind in members if hasattr(kind, "__get__") and not issubclass(kind, MemberDescriptorType)}
    for base in cls.__mro__:
        if base is not object and is_librarys(base):
            for value in vars(base).values():
                code = getattr(value, "__code__", None)
                found.update(code.co_names if type(code) is CodeType else ())
    return found


def _parent(holding: Holding, node: int, child: int) -> int | None:
    """What refers to the value: the object, or the dict of its attributes."""
    if child in holding.children[node]:
        return node
    attributes: Any = next((one for one in holding.children[node] if child in holding.children[one]), None)
    return attributes if attributes is not None and type(holding.objects[attributes]) is dict else None
