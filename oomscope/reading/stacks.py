"""Interning of stacks: each distinct one gets a number, whatever lists it stands in."""

from __future__ import annotations

from collections import deque
from itertools import accumulate, chain, pairwise, repeat
from operator import setitem
from typing import Any

import numpy as np

from oomscope.errors import SnapshotError
from oomscope.model import NO_STACK, Frame, StackTable
from oomscope.reading.columns import kind_of
from oomscope.reading.printable import printable

_ALL = slice(None)
_USUAL = frozenset({"filename", "line", "name"})


class StackInterner:
    """Numbers stacks in the order in which they are first met.

    Pickles share a frame's dict between all stacks, and a stack's list between entries and blocks. So three levels,
    each met much more rarely than the one before: the list, the identities of its frames, and what the frames say.
    """

    def __init__(self) -> None:
        self._by_identities: dict[bytes, int] = {b"": NO_STACK}
        self._by_frames: dict[tuple[int, ...], int] = {(): NO_STACK}
        # The dicts are kept, for an identity is true only as long as its object lives.
        self._met: dict[int, tuple[int, Any]] = {}
        self._frames: dict[Frame, int] = {}
        self._marks: dict[int, list[object]] = {NO_STACK: []}

    def numbers(self, stacks: list[Any]) -> list[int]:
        """The number of each of `stacks`.

        Args:
            stacks: lists of frame dicts, or None. A list's frames are taken out of it, so that they do not fill memory;
                what is left in it is a mark by which it is known when it comes again.

        Raises:
            SnapshotError: something else stands there.
        """
        identities = list(map(id, stacks))
        distinct = dict(zip(identities, stacks, strict=True))
        distinct.pop(id(None), None)
        lists = list(distinct.values())
        keys = _identities_of_frames(lists)
        try:
            found = list(map(self._by_identities.__getitem__, keys))
        except KeyError:
            found = list(map(self._number, keys, lists))
        self._put_marks(lists, found)
        numbers = dict(zip(distinct, found, strict=True))
        numbers[id(None)] = NO_STACK
        return list(map(numbers.__getitem__, identities))

    def _number(self, key: bytes, stack: list[Any]) -> int:
        number = self._by_identities.get(key)
        if number is None:
            number = self._by_identities[key] = self.number_of_frames(stack)
        self._make_mark(number)
        return number

    def _make_mark(self, number: int) -> None:
        if number not in self._marks:
            self._marks[number] = [object()]
            self._by_identities[_identities_of_frames([self._marks[number]])[0]] = number

    def _put_marks(self, lists: list[Any], numbers: list[int]) -> None:
        deque(map(setitem, lists, repeat(_ALL), map(self._marks.__getitem__, numbers)), maxlen=0)

    def mark(self, lists: list[Any], number: int) -> None:
        """Have `lists` known as the stack with this `number` when they come again."""
        self._make_mark(number)
        self._put_marks(lists, [number] * len(lists))

    def number_of_frames(self, frames: list[Any]) -> int:
        """The number of the stack with these frames, dicts, the innermost first.

        Raises:
            SnapshotError: something else stands there.
        """
        return self._by_frames.setdefault(tuple(map(self._frame_number, frames)), len(self._by_frames) - 1)

    def _frame_number(self, frame: Any) -> int:
        if id(frame) not in self._met:
            number = self._frames.setdefault(frame_of(frame), len(self._frames))
            self._met[id(frame)] = number, frame
        return self._met[id(frame)][0]

    def table(self) -> StackTable:
        """All stacks met so far."""
        stacks = list(self._by_frames)[1:]
        return StackTable.from_stacks(list(self._frames), stacks)


def _identities_of_frames(stacks: list[Any]) -> list[bytes]:
    """For each stack, the identities of its frames in a row: equal for equal frames, and quick to compare.

    The memory of an array of objects is their identities, which is much faster than a tuple of `id`s for each stack.
    """
    if set(map(type, stacks)) - {list}:
        wrong = next(stack for stack in stacks if type(stack) is not list)
        raise SnapshotError(f"a stack ('frames') is {kind_of(wrong)}, not a list of frames.")
    lengths = list(map(len, stacks))
    identities = np.fromiter(chain.from_iterable(stacks), dtype=object, count=sum(lengths))
    ends = [identities.itemsize * end for end in accumulate(lengths, initial=0)]
    memory = identities.tobytes()
    return [memory[start:end] for start, end in pairwise(ends)]


def frame_of(frame: Any) -> Frame:
    """The record of one frame's dict.

    Raises:
        SnapshotError: `frame` is no dict, or its fields are of other types.
    """
    if type(frame) is not dict:
        raise SnapshotError(f"a frame of a stack is {kind_of(frame)}, not a dict.")
    filename, line, name = frame.get("filename", "??"), frame.get("line", 0), frame.get("name", "??")
    if not (isinstance(filename, str) and isinstance(name, str) and isinstance(line, int)):
        found = ", ".join(f"{key} {printable(frame.get(key))}" for key in ("filename", "line", "name"))
        raise SnapshotError(f"a frame of a stack has fields of unexpected types ({found}).")
    extra = tuple((_text(key), _text(frame[key])) for key in frame if key not in _USUAL)
    return Frame(filename, line, name, extra)


def _text(value: object) -> str:
    return value if isinstance(value, str) else printable(value, 200)
