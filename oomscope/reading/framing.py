"""The FRAMEs of a pickle, which stand anywhere between two instructions, in the midst of an entry too."""

from __future__ import annotations

from oomscope.errors import SnapshotError
from oomscope.reading.entry_walk import EntryWalk, begins_at
from oomscope.reading.instructions import FRAME

_IN_THE_MIDST = "a frame begins in the midst of an instruction."


class Framing:
    """Where the FRAMEs of a pickle stand: each tells where the next should. They may stand in the midst of an entry."""

    def __init__(self) -> None:
        self._next: int | None = 2  # after PROTO
        self._size = 9

    def _after(self, data: bytes, at: int) -> int | None:
        """Where the next FRAME is to be, by the one at `at`; None where there is none."""
        return at + 9 + int.from_bytes(data[at + 1 : at + 9], "little") if data[at] == FRAME else None

    def pass_over(self, data: bytes, begin: int, end: int) -> None:
        """Follow the frames from the byte `begin` of the pickle, where `data` begins, to `end`."""
        while self._next is not None and self._next + self._size <= end:
            following = self._after(data, self._next - begin)
            self._next = None if following is None else begin + following

    def without(self, data: bytes, begin: int) -> tuple[bytes, list[int]]:
        """`data`, which begins at the byte `begin`, without FRAMEs; and where in it each of them stood."""
        parts: list[memoryview] = []
        places: list[int] = []
        view = memoryview(data)  # so that each byte is copied once only
        at = 0
        following = None if self._next is None else self._next - begin
        while following is not None and following + self._size <= len(data):
            places.append(following - self._size * len(places))
            parts.append(view[at:following])
            at, following = following + self._size, self._after(data, following)
        # One that is cut in two has to wait.
        parts.append(view[at:] if following is None else view[at:following])
        return b"".join(parts), places


def check_boundary(walk: EntryWalk, place: int) -> None:
    """Raise `SnapshotError` where a FRAME stood at `place` of the entry, but no instruction begins there."""
    if place < walk.end and place not in walk.boundaries:
        raise SnapshotError(_IN_THE_MIDST)


def check_after_head(data: bytes, head_end: int, place: int) -> None:
    """The same for an entry with a known shape, whose head ends at `head_end`, where no instruction of it begins."""
    if not begins_at(data, head_end, place):
        raise SnapshotError(_IN_THE_MIDST)
