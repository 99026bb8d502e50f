"""Finds all anchors of all families in bytes: by four characters of each, which the rest of a log seldom has.

Four neighbouring bytes are one number, and a log is an array of such numbers: one look at a table for each place of the
log tells whether any of two hundred anchors may stand there, however many they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from oomscope.messages.families import ANCHORS

if TYPE_CHECKING:
    from numpy import bool_, uint32
    from numpy.typing import NDArray

MOST_PLACES = 300
"""Places of each anchor that are read; of more, nobody reads what is said about them."""
COMMONEST = b"out of memory"
"""Counts messages where they are only counted."""
_USUAL = (
    b"[2026-01-02 03:04:05,678] info epoch 12 step 3456 loss: 0.1234 lr 1e-4 memory: 10237 mib grad_norm 1.23 allocated"
    b" on device cuda:0, 12.3 it/s, eta 1:23:45 2026-01-02t03:04:05z warning the error: failed to load file"
    b' "/home/user/model/checkpoint.pt", line 12, in forward, not found. gpu memory usage, kernel, tensor, batch size'
    b" max memory allocated: 12.3 gb reserved available cache status buffer server started at http://0.0.0.0:8000"
)
"""What logs are full of: an anchor is looked for by something else, where it has anything else."""
_WIDTH = 4
_FEW = 1 << 20
"""Bytes up to which plain searches are quicker than loading numpy."""
_BLOCK = 256 << 10
"""Bytes that are looked at together: they and what is made of them fit into a processor's cache."""
_LONGEST = max(map(len, ANCHORS))


@dataclass(slots=True)
class Anchors:
    """Finds places, and counts those that are too many.

    Attributes:
        over: places of each anchor beyond `MOST_PLACES`.
    """

    over: Counter[bytes] = field(default_factory=Counter)
    _counts: Counter[bytes] = field(default_factory=Counter)

    def places(self, data: bytes, start: int, end: int) -> list[int]:
        """Where an anchor stands in `data` between `start` and `end`, in order: the place of its rare characters."""
        first = max(0, start - _LONGEST)
        lowered = data[first:].lower()
        search = _few if len(lowered) < _FEW else _many
        found = search(lowered, start - first, end - first)
        return sorted({first + place for anchor, place in found if self._is_wanted(anchor)})

    def _is_wanted(self, anchor: bytes) -> bool:
        self._counts[anchor] += 1
        if self._counts[anchor] <= MOST_PLACES:
            return True
        self.over[anchor] += 1
        return False


@cache
def _rare() -> dict[bytes, list[tuple[bytes, int]]]:
    """The anchors by their rare characters, each with how far these are from its start."""
    found: defaultdict[bytes, list[tuple[bytes, int]]] = defaultdict(list)
    for anchor in ANCHORS:
        at = min(
            range(len(anchor) - _WIDTH + 1),
            key=lambda at: (_USUAL.count(anchor[at : at + _WIDTH]), anchor[at : at + _WIDTH] not in found),
        )
        found[anchor[at : at + _WIDTH]].append((anchor, at))
    return dict(found)


def _few(lowered: bytes, start: int, end: int) -> Iterator[tuple[bytes, int]]:
    for anchors in _rare().values():
        for anchor, at in anchors:
            place = lowered.find(anchor, max(0, start - at))
            while 0 <= place < end - at:
                yield anchor, place + at
                place = lowered.find(anchor, place + 1)


def _many(lowered: bytes, start: int, end: int) -> Iterator[tuple[bytes, int]]:
    by_characters = _rare()
    for block in range(start, end, _BLOCK):
        for place in _candidates(lowered, block, min(block + _BLOCK, end)):
            for anchor, at in by_characters[lowered[place : place + _WIDTH]]:
                if place >= at and lowered.startswith(anchor, place - at):
                    yield anchor, place


def _candidates(lowered: bytes, start: int, end: int) -> list[int]:
    """Where between `start` and `end` four characters stand by which an anchor is looked for, in order."""
    import numpy as np

    numbers, table = _table()
    found: list[int] = []
    for shift in range(start, start + _WIDTH):
        count = (min(end + _WIDTH - 1, len(lowered)) - shift) // _WIDTH
        if count <= 0:
            break
        here = np.frombuffer(lowered, dtype="<u4", count=count, offset=shift)
        maybe = np.flatnonzero(table[_slot(here)])
        if maybe.size:
            sure = maybe[np.isin(here[maybe], numbers)]
            found += (sure * _WIDTH + shift).tolist()
    return sorted(found)


@cache
def _table() -> tuple[NDArray[uint32], NDArray[bool_]]:
    """The rare characters as numbers, and which slots of a table they fall into."""
    import numpy as np

    numbers = np.array([int.from_bytes(characters, "little") for characters in _rare()], dtype=np.uint32)
    table = np.zeros(1 << 16, dtype=bool)
    table[_slot(numbers)] = True
    return numbers, table


def _slot(numbers: NDArray[uint32]) -> NDArray[uint32]:
    """Where in the table numbers fall: the upper half of a product in which every bit of theirs counts."""
    from numpy import uint32

    slots: NDArray[uint32] = (numbers * uint32(2654435761)) >> uint32(16)
    return slots
