"""Interning of stacks: each distinct one gets a number, whatever lists it stands in."""

from __future__ import annotations

from typing import Any

from oomscope.errors import SnapshotError
from oomscope.model import NO_STACK, Frame, StackTable
from oomscope.reading.columns import kind_of
from oomscope.reading.printable import printable

_USUAL = frozenset({"filename", "line", "name"})


class StackInterner:
    """Numbers stacks in the order in which they are first met.

    Pickles share a frame's dict between all stacks, and a stack's list between an allocation, its free and its block.
    So three levels, each much rarer than the one before: the list's identity, the identities of its frames, and what
    the frames say. Identities stay true only as long as the objects live: the caller keeps them alive (the unpickler's
    memo does, even when their contents were cleared) for as long as it uses the interner.
    """

    def __init__(self) -> None:
        self._by_list: dict[int, int] = {id(None): NO_STACK}
        self._by_identities: dict[tuple[int, ...], int] = {(): NO_STACK}
        self._by_frames: dict[tuple[int, ...], int] = {(): NO_STACK}
        self._frame_by_identity: dict[int, int] = {}
        self._frames: dict[Frame, int] = {}

    def numbers(self, stacks: list[Any]) -> list[int]:
        """The number of each of `stacks`: lists of frame dicts, or None.

        Raises:
            SnapshotError: something else stands there.
        """
        identities = list(map(id, stacks))
        fresh = dict(zip(identities, stacks, strict=True))
        known = self._by_list
        for identity in fresh.keys() & known.keys():
            del fresh[identity]
        if fresh:
            self._meet(fresh)
        return list(map(known.__getitem__, identities))

    def _meet(self, fresh: dict[int, Any]) -> None:
        for stack in fresh.values():
            if type(stack) is not list:
                raise SnapshotError(f"A stack ('frames') is {kind_of(stack)}, not a list of frames.")
        by_identities = self._by_identities
        keys = [tuple(map(id, stack)) for stack in fresh.values()]
        numbers: list[int | None] = list(map(by_identities.get, keys))
        if None in numbers:
            for key, stack in zip(keys, fresh.values(), strict=True):
                if key not in by_identities:
                    by_identities[key] = self._number(stack)
            self._by_list.update(zip(fresh, map(by_identities.__getitem__, keys), strict=True))
        else:
            self._by_list.update(zip(fresh, numbers, strict=True))  # type: ignore[arg-type]

    def _number(self, stack: list[Any]) -> int:
        frames = tuple(map(self._frame_number, stack))
        return self._by_frames.setdefault(frames, len(self._by_frames) - 1)

    def _frame_number(self, frame: Any) -> int:
        number = self._frame_by_identity.get(id(frame))
        if number is None:
            number = self._frames.setdefault(frame_of(frame), len(self._frames))
            self._frame_by_identity[id(frame)] = number
        return number

    def table(self) -> StackTable:
        """All stacks met so far."""
        stacks = list(self._by_frames)[1:]
        return StackTable.from_stacks(list(self._frames), stacks)


def frame_of(frame: Any) -> Frame:
    """The record of one frame's dict.

    Raises:
        SnapshotError: `frame` is no dict, or its fields are of other types.
    """
    if type(frame) is not dict:
        raise SnapshotError(f"A frame of a stack is {kind_of(frame)}, not a dict.")
    filename, line, name = frame.get("filename", "??"), frame.get("line", 0), frame.get("name", "??")
    if not (isinstance(filename, str) and isinstance(name, str) and isinstance(line, int)):
        found = ", ".join(f"{key} {printable(frame.get(key))}" for key in ("filename", "line", "name"))
        raise SnapshotError(f"A frame of a stack has fields of unexpected types ({found}).")
    extra = tuple((str(key), str(frame[key])) for key in frame if key not in _USUAL)
    return Frame(filename, line, name, extra)
