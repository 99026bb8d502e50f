"""What is read: all that some roots reach, and what has a reference that Python cannot see."""

from __future__ import annotations

import dis
import functools
import gc
import sys
import types
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from types import FrameType
from typing import Any

from oomscope.recording.census import roots as places
from oomscope.recording.census.garbage import References
from oomscope.recording.census.heap import Heap
from oomscope.recording.census.holding import Holding, is_graph_node
from oomscope.recording.census.kept import Kept
from oomscope.recording.census.storages import Storage

_OPTIMIZED, _VARARGS = 0x1, 0x4


class Readers:
    """The graph of who refers to whom, with what counts references of which it knows nothing."""

    def __init__(
        self,
        holding: Holding,
        heap: Heap,
        references: References,
        kept: Kept,
        frames: list[FrameType],
        offsets: Mapping[int, int],
    ) -> None:
        self._holding, self._heap, self._references, self._kept = holding, heap, references, kept
        self._frames, self._offsets = frames, offsets

    def reach(self, roots: Iterable[int], others: Iterable[int], *, for_graphs: bool = False) -> set[int]:
        """The nodes that `roots` reach, with those reached from `others` that something invisible holds.

        With `for_graphs` those whose graphs may be read: a view without gradients reads values alone.
        """
        holding, kept = self._holding, self._kept
        read: set[int] = set()
        kept.reach(holding, roots, read, for_graphs=for_graphs)
        unread = kept.reach(holding, others, set(read))
        asked = [node for node in unread if _counts(holding.objects[node])]
        known = _from_frames(holding, self._heap, set(asked), self._frames, self._offsets) + _from_torch(
            holding, kept, unread
        )
        kept.reach(holding, self._references.held_elsewhere(asked, holding.objects, known), read, for_graphs=for_graphs)
        return read


def _counts(item: Any) -> bool:
    """Whether references to it tell who holds it: it is an object of the program's own."""
    return not is_graph_node(item) and type(item) is not Storage


def _from_frames(
    holding: Holding, heap: Heap, asked: set[int], frames: list[FrameType], ended: Container[int]
) -> Counter[int]:
    """By id, how many references running frames make that the collector does not see."""
    known_frames = {id(frame) for frame in heap.of_types({FrameType})}
    cells: dict[int, list[int]] = {}
    for node in asked:
        item = holding.objects[node]
        if type(item) is types.CellType:
            cells.setdefault(id(_contents(item)), []).append(id(item))
    found: Counter[int] = Counter()
    for frame in frames:
        code = frame.f_code
        if not code.co_flags & _OPTIMIZED:
            continue
        seen = set(map(id, gc.get_referents(frame))) if id(frame) in known_frames else set()
        shared = {*code.co_cellvars, *code.co_freevars}
        for name, value in places.local_variables(frame).items():
            keys = [id(value)] if name not in shared else cells.get(id(value), [])
            if len(keys) == 1 and keys[0] not in seen:
                found[keys[0]] += 1
            if id(frame) not in ended and name == _handed_on(code, frame.f_lasti):
                found[id(value)] += 1
    return found


@functools.lru_cache(maxsize=512)
def _handed_on(code: types.CodeType, offset: int) -> str | None:
    """The name of the ``*args`` that the call at `offset` hands on as they are; it holds them until it returns.

    None where it is no such call; since Python 3.12 it lets go of them when the function begins.
    """
    if sys.version_info >= (3, 12) or not code.co_flags & _VARARGS:
        return None
    before = [one for one in dis.get_instructions(code) if one.offset <= offset and one.opname != "CACHE"]
    call, name = before[-1], code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
    if call.opname != "CALL_FUNCTION_EX":
        return None
    loads = before[-5:-4] if (call.arg or 0) & 1 else before[-2:-1]  # with keywords those are merged in between
    return name if [(one.opname, one.argval) for one in loads] == [("LOAD_FAST", name)] else None


def _from_torch(holding: Holding, kept: Kept, unread: set[int]) -> Counter[int]:
    """By id, the tensors that C++ refers to from what is not read: since torch 2.10 that counts as one reference."""
    found = kept.behind & unread
    for node in unread:
        found.update(kept.further.get(node, ()))
        found.update(one for key in kept.saved.get(node, ()) for one in kept.tensors_of.get(key, ()))
    return Counter({id(holding.objects[node]): 1 for node in found})


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
