"""Memory that only variables keep which no running call will read again.

This is the collector's own question with fewer roots: a variable that the rest of its function does not read
(`liveness`) is none. What is then reached from no root, and has no reference that Python cannot see, is needed by
nobody, though it is not garbage: ``del`` would free it. Whatever cannot be told counts as read.
"""

from __future__ import annotations

import collections
import functools
import itertools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from oomscope.recording.census import roots as places
from oomscope.recording.census.attribute_stores import stores_of
from oomscope.recording.census.garbage import References
from oomscope.recording.census.graph import sequence_number
from oomscope.recording.census.heap import Deadline, Heap
from oomscope.recording.census.holding import Holding, is_graph_node, is_tensor_like
from oomscope.recording.census.idle import Idle, find_idle, without
from oomscope.recording.census.kept import Kept
from oomscope.recording.census.liveness import LoopAround, Use, global_reads, loops_around, uses_after
from oomscope.recording.census.no_gradient import uses_with_gradients
from oomscope.recording.census.paths import is_cache
from oomscope.recording.census.readers import Readers
from oomscope.recording.census.remaining import names_still_read
from oomscope.recording.census.storages import Key
from oomscope.recording.census.suspended import find_suspended, place_of_suspended

Asked = Callable[[], frozenset[str] | None]
"""Tells the names that code which may still run asks for; None where that cannot be told."""
NEWEST = (3, 13)
"""Later versions of Python keep values on a call's stack without counting a reference, so that nothing is proven."""
_OPTIMIZED = 0x1
_NOTHING = object()
_AS_OBJECT = frozenset(map(id, (object, dict, collections.OrderedDict, list, tuple)))
"""Types whose attributes are looked up as those of any object; by id, for a metaclass may compare as it likes."""
_MOST_ROWS = 50
_MOST_OTHERS = 3


@dataclass(slots=True)
class Variable:
    """A variable that is not read again, or of which only `reads` are; or what else nobody reads, which has no node."""

    holder: str
    place: str  # local, global, attribute, suspended, frozen
    at: places.Place | None
    node: int
    since: str | None  # whether it was written before all loops that are underway, between two, or by a pass of one
    reads: tuple[str, ...] = ()
    loop: int | None = None  # first line of the outermost loop of its function that is underway and does not write it
    cache: bool = False  # whether it is a function that `functools.lru_cache` lets remember what it has returned
    others: list[str] = field(default_factory=list)  # further variables of the kind that keep some of the same
    bytes: dict[int, int] = field(default_factory=dict)  # by device
    tensors: dict[int, int] = field(default_factory=dict)

    def add(self, device: int, size: int) -> None:
        """Put one storage down to it."""
        self.bytes[device] = self.bytes.get(device, 0) + size
        self.tensors[device] = self.tensors.get(device, 0) + 1

    def rows(self) -> Iterator[dict[str, Any]]:
        """As the dump keeps it: a row for each device."""
        for device, size in self.bytes.items():
            yield {
                "holder": self.holder,
                "place": self.place,
                "device": device,
                "bytes": size,
                "tensors": self.tensors[device],
                "reads": list(self.reads),
                "since": self.since,
                "loop": self.loop,
                "cache": self.cache,
                "others": self.others[:_MOST_OTHERS],
                "at": None if self.at is None else dict(zip(("filename", "line", "name"), self.at, strict=True)),
            }


class Roots:
    """Variables that are read again, as nodes, and those that are not."""

    def __init__(self, holding: Holding, offsets: Mapping[int, int]) -> None:
        self._numbers = holding.numbers
        self._offsets = offsets
        self._looping: set[int] = set()  # ids of calls that a loop further in is underway for
        self._later: dict[int, frozenset[Use]] = {}  # of calls that record no gradients: what they read once they do
        self.read: set[int] = set()
        self.shown: set[int] = set()  # what is read only by code that records no gradients: its values, and no graph
        self.unread: list[Variable] = []

    def note_gradients(self, stack: list[FrameType]) -> None:
        """Which of these calls of one thread, outermost first, record no gradients."""
        self._later.update(uses_with_gradients(stack, self._offsets))

    def note_loops(self, stack: list[FrameType]) -> None:
        """Which of these calls, outermost first, wait for a loop in one that they have made, outside any Module's."""
        inner = list(itertools.takewhile(lambda frame: not _calls_module(frame), stack))
        looping = [place for place, frame in enumerate(inner) if _may_loop(frame) and self._loops(frame)]
        self._looping.update(id(frame) for frame in stack[: max(looping, default=0)])

    def _loops(self, frame: FrameType) -> tuple[LoopAround, ...]:
        return loops_around(frame.f_code, self._offset(frame))

    def _since(self, frame: FrameType, name: str) -> str | None:
        """Whether a variable is older than the loops underway: ``before`` all, ``between`` two; else ``pass``."""
        loops = self._loops(frame)
        if not loops:
            return "before" if id(frame) in self._looping else None
        if name not in loops[-1].writes:
            return "before"
        return "between" if id(frame) in self._looping or name not in loops[0].writes else "pass"

    def _loop(self, frame: FrameType, name: str) -> int | None:
        """The first line of the outermost loop of the call that is underway and does not write the variable."""
        around = [one for one in self._loops(frame) if name not in one.writes]
        return around[-1].line if around else None

    def add_call(self, frame: FrameType) -> None:
        """The variables of a running function."""
        uses = uses_after(frame.f_code, self._offset(frame))
        self._add(frame, places.local_variables(frame), uses, "local", places.function_name(frame))

    def add_module(self, frame: FrameType, label: str, functions: Iterable[types.FunctionType], asked: Asked) -> None:
        """The variables of a script that runs, which those of its functions read as well that may still be called."""
        uses = uses_after(frame.f_code, self._offset(frame))
        for code in (*(one.__code__ for one in functions), *_codes_within(frame.f_code)):
            names = global_reads(code)
            if uses is None or names is None:
                uses = None
                self._later.pop(id(frame), None)
                break
            read = {Use(name) for name in names if self._is_asked(frame.f_globals.get(name), name, asked)}
            uses |= read
            if id(frame) in self._later:
                self._later[id(frame)] |= read
        self._add(frame, dict(frame.f_globals), uses, "global", label)

    def add_imported(self, label: str, variables: Mapping[str, Any], asked: Asked) -> None:
        """The variables of a module of the program that was imported: whoever reads one asks for it by its name."""
        for name, value in list(variables.items()):
            node = self._numbers.get(id(value))
            if node is not None and self._is_asked(value, name, asked):
                self.read.add(node)
            elif node is not None:
                self.unread.append(Variable(f"{label}: {name}", "global", None, node, None, cache=is_cache(value)))

    def _is_asked(self, value: Any, name: str, asked: Asked) -> bool:
        """Whether code that may still run asks for `name`; that takes time, so not looked into if it keeps nothing."""
        if id(value) not in self._numbers:
            return True
        names = asked()
        return names is None or name in names

    def _offset(self, frame: FrameType) -> int:
        return self._offsets.get(id(frame), frame.f_lasti)

    def _add(
        self, frame: FrameType, variables: Mapping[str, Any], uses: frozenset[Use] | None, place: str, label: str
    ) -> None:
        for name, value in variables.items():
            node = self._numbers.get(id(value))
            if node is None:
                continue
            later = self._later.get(id(frame), uses)
            into = self.read if later is None or any(one.name == name for one in later) else self.shown
            parts = None if uses is None else [_resolve(value, one.steps) for one in uses if one.name == name]
            if parts is None or None in parts:
                into.add(node)
                continue
            into.update(known for part in parts if part is not None and (known := self._numbers.get(part)))
            reads = sorted({_words(one.steps) for one in uses or () if one.name == name})
            at = places.place_of(frame)
            since, loop = self._since(frame, name), self._loop(frame, name)
            read = tuple(reads)
            self.unread.append(Variable(f"{label}: {name}", place, at, node, since, read, loop, is_cache(value)))


def _calls_module(frame: FrameType) -> bool:
    return frame.f_code.co_name in ("_call_impl", "_wrapped_call_impl") and places.is_torchs(frame.f_code.co_filename)


def _may_loop(frame: FrameType) -> bool:
    """Whether a loop in it may be one over steps: torch's own go through parameters and the like."""
    return not places.is_torchs(frame.f_code.co_filename)


def asks_for(stacks: list[list[FrameType]], offsets: Mapping[int, int], heap: Heap, deadline: Deadline) -> Asked:
    """`names_still_read` by the running frames, told when it is first asked for; None for a Python that is too new."""

    @functools.cache
    def names() -> frozenset[str] | None:
        if sys.version_info[:2] > NEWEST:
            return None
        frames = {id(frame): frame for stack in stacks for frame in stack}
        return names_still_read(frames.values(), offsets, heap.of_types({types.FunctionType}), heap, deadline)

    return names


def find_unread(
    holding: Holding,
    heap: Heap,
    references: References,
    kept: Kept,
    stacks: list[list[FrameType]],
    offsets: Mapping[int, int],
    asked: Asked,
    deadline: Deadline,
) -> tuple[list[dict[str, Any]], dict[Key, str]]:
    """The variables that alone keep memory and are not read again; for each such storage, which one it is.

    Args:
        holding: who refers to whom, with the roots that have claimed it; nothing was said of it in words yet.
        heap: where referrers are looked up.
        references: counts of references.
        kept: which storages each node keeps.
        stacks: the running frames.
        offsets: by the id of a frame, where it stood when an exception was raised there.
        asked: tells the names that code which may still run asks for.
        deadline: when to stop.
    """
    if sys.version_info[:2] > NEWEST or not kept.tells:
        return [], {}
    frames = list({id(frame): frame for stack in stacks for frame in stack}.values())
    roots = _roots_of_calls(holding, stacks, frames, offsets)
    analysed = _add_globals(roots, heap, stacks, asked)
    idle, waiting = find_idle(holding, heap, frames, asked), find_suspended(holding, frames)
    if not roots.unread and not idle and not waiting and not roots.shown:
        return [], {}
    deadline.check()
    with without(holding, [*idle, *waiting]):
        others = _other_roots(holding, analysed, kept)
        starts = [*(one.node for one in roots.unread), *(one.value for one in (*idle, *waiting))]
        readers = Readers(holding, heap, references, kept, frames, offsets)
        read = readers.reach(roots.read | roots.shown | others, starts)
        deadline.check()
        needed = readers.reach(roots.read | others, [*starts, *roots.shown], for_graphs=True) if roots.shown else read
        deadline.check()
    variables = [*roots.unread, *_attributes(holding, idle), *_suspended(holding, waiting)]
    told: dict[Key, str] = {}
    _tell(holding, kept, variables, read, told)
    graphs, in_use = _graphs(holding, kept, roots.shown, needed)
    _tell(holding, kept, graphs, in_use, told)
    rows = [row for one in (*variables, *graphs) for row in one.rows()]
    return sorted(rows, key=lambda row: -row["bytes"])[:_MOST_ROWS], told


def _roots_of_calls(
    holding: Holding, stacks: list[list[FrameType]], frames: list[FrameType], offsets: Mapping[int, int]
) -> Roots:
    roots = Roots(holding, offsets)
    for stack in stacks:
        roots.note_loops(stack)
        roots.note_gradients(stack)
    for frame in frames:
        if frame.f_code.co_flags & _OPTIMIZED:
            roots.add_call(frame)
    return roots


def _graphs(holding: Holding, kept: Kept, shown: set[int], needed: set[int]) -> tuple[list[Variable], set[int]]:
    """The graphs behind tensors of which only the values are read, as variables; and all nodes that something needs.

    Args:
        holding: who refers to whom.
        kept: which storages each node keeps.
        shown: what only code reads that records no gradients.
        needed: what any other code reads.
    """
    graphs = {node for node in kept.reach(holding, shown, set(needed)) if is_graph_node(holding.objects[node])}
    values = kept.reach(holding, shown, needed | graphs)
    found = []
    tensors = (node for node in values if is_tensor_like(holding.objects[node]))
    for node in sorted(tensors, key=lambda node: -sequence_number(holding.objects[node])):
        behind = holding.numbers.get(id(holding.objects[node].grad_fn))
        words = holding.label(node) if behind in graphs else None
        if behind is not None and words is not None:
            root = holding.entered.get(holding.start(node))
            found.append(Variable(words, "graph", None if root is None else root.at, behind, None))
    return found, needed | values


def _suspended(holding: Holding, waiting: Iterable[Idle]) -> Iterator[Variable]:
    """Variables of generators that wait, as variables."""
    for one in waiting:
        words, frame = holding.label(one.value), place_of_suspended(holding, one)
        if words is not None and frame is not None:
            yield Variable(words, "suspended", places.place_of(frame), one.value, None)


def _attributes(holding: Holding, idle: Iterable[Idle]) -> Iterator[Variable]:
    """Attributes as variables. Only now in words, for that gives objects a dict of their attributes."""
    for one in idle:
        label = holding.label(one.owner)
        if label is not None:
            at = next(iter(stores_of(holding.objects[one.owner], one.name)), None)
            yield Variable(f"{label}.{one.name}", "attribute", at, one.value, None)


def _add_globals(roots: Roots, heap: Heap, stacks: list[list[FrameType]], asked: Asked) -> set[str]:
    """Add the globals of the program's modules of which all that may read them is known; returns their labels."""
    analysed = set()
    for label, variables, kind, frame in places.module_globals(stacks).values():
        if kind != places.USER_GLOBAL or (frame is None and label == "__main__"):
            continue
        if frame is None:
            roots.add_imported(label, variables, asked)
            analysed.add(label)
        elif not frame.f_code.co_filename.startswith("<"):
            known = [one for one in heap.of_types({types.FunctionType}) if one.__globals__ is variables]
            # Running code is a function of its own to Python 3.11 and later.
            roots.add_module(frame, label, [one for one in known if one.__code__ is not frame.f_code], asked)
            analysed.add(label)
    return analysed


def _codes_within(code: types.CodeType) -> Iterator[types.CodeType]:
    return (one for one in code.co_consts if isinstance(one, types.CodeType))


def _other_roots(holding: Holding, analysed: set[str], kept: Kept) -> set[int]:
    """All that is held but by the variables of running code: by other globals, classes and what cannot be seen."""
    told = (places.USER_FRAME, places.LIBRARY_FRAME, places.PASSED_ON)
    found = set()
    for root, node in holding.entries:
        kind = root.order[0]
        if kind not in told and not (kind == places.USER_GLOBAL and root.label in analysed):
            found.add(node)
    entered = {node for _, node in holding.entries}
    found.update(node for node in holding.starts if node not in entered)
    # What nothing visible leads to, something invisible holds: but for what tensors and graphs keep in C++.
    known = kept.behind | kept.saved_tensors()
    return found.union(
        node for node in range(1, len(holding.objects)) if not holding.is_claimed(node) and node not in known
    )


def _resolve(value: Any, steps: tuple[tuple[str, str | int], ...]) -> int | None:
    """The id of what `steps` lead to from `value`; None where only the program itself could tell."""
    for kind, key in steps:
        if kind == "." and type(key) is str:
            cls = type(value)
            default = next((vars(base)[key] for base in cls.__mro__ if key in vars(base)), _NOTHING)
            if _is_overridden(cls) or any("__get__" in vars(base) for base in type(default).__mro__):
                return None
            try:
                value = object.__getattribute__(value, key)
            except AttributeError:
                return None
            if value is default:
                return None
        elif (type(value) is dict and key in value) or (
            type(value) in (list, tuple) and type(key) is int and -len(value) <= key < len(value)
        ):
            value = value[key]
        else:
            return None
    return id(value) if steps else None


def _is_overridden(cls: type) -> bool:
    return any("__getattribute__" in vars(base) for base in cls.__mro__ if id(base) not in _AS_OBJECT)


def _words(steps: tuple[tuple[str, str | int], ...]) -> str:
    return "".join(f".{key}" if kind == "." else f"[{key!r}]" for kind, key in steps)


def _note_sharers(variable: Variable, parts: Iterable[int], owner: Mapping[int, Variable]) -> None:
    """Add `variable` to the others of each variable that owns one of its parts: without both gone none is free."""
    for first in {id(found): found for part in parts if (found := owner.get(part)) is not None}.values():
        if first.holder != variable.holder and variable.holder not in first.others:
            first.others.append(variable.holder)


def _tell(holding: Holding, kept: Kept, variables: list[Variable], read: set[int], told: dict[Key, str]) -> None:
    """Put each storage that is not `told` yet down to the first variable that keeps it, outermost call first."""
    owner: dict[int, Variable] = {}
    in_use, seen = kept.storages(holding, read), set(read)
    for one in variables:
        if one.node in owner and owner[one.node].holder != one.holder:
            owner[one.node].others.append(one.holder)
        nodes = kept.reach(holding, [one.node], seen)
        _note_sharers(one, [child for node in nodes for child in holding.children[node]], owner)
        owner.update(dict.fromkeys(nodes, one))
        for key in kept.storages(holding, nodes) - in_use - told.keys():
            if kept.is_shared_unseen(holding, key):
                continue
            told[key] = one.holder
            one.add(key[0], kept.reader.storages[key].bytes)
