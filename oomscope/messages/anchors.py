"""Finds all anchors of all families in bytes, a few passes for a hundred of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from oomscope.messages.families import ANCHORS

MOST_PLACES = 500
"""Places of each anchor that are read; of more, nobody reads what is said about them."""
_SHARED = (
    b"memory", b"alloc", b"137", b"-9", b"kill", b"status", b"cache", b"cuda", b"resource", b"algorithm", b"signal",
)  # fmt: skip
"""Words of many anchors: one search for the word, with what must stand around it, is faster than one for each."""


def _pattern(word: bytes, anchors: list[bytes]) -> re.Pattern[bytes]:
    """`word` wherever one of `anchors` stands around it; the group that matched tells which."""
    around = []
    for anchor in anchors:
        before, _, after = anchor.partition(word)
        around.append(b"((?<=" + re.escape(before + word) + b")" + re.escape(after) + b")")
    return re.compile(re.escape(word) + b"(?:" + b"|".join(around) + b")")


def _grouped() -> tuple[list[tuple[list[bytes], re.Pattern[bytes]]], list[bytes]]:
    groups: dict[bytes, list[bytes]] = {word: [] for word in _SHARED}
    alone: list[bytes] = []
    for anchor in ANCHORS:
        word = next((word for word in _SHARED if word in anchor), None)
        (groups[word] if word else alone).append(anchor)
    return [(anchors, _pattern(word, anchors)) for word, anchors in groups.items() if anchors], alone


_GROUPS, _ALONE = _grouped()


@dataclass(slots=True)
class Anchors:
    """Finds places, and counts those that are too many.

    Attributes:
        over: places of each anchor beyond `MOST_PLACES`.
    """

    over: Counter[bytes] = field(default_factory=Counter)
    _counts: Counter[bytes] = field(default_factory=Counter)

    def places(self, data: bytes, start: int, end: int) -> list[int]:
        """Where an anchor stands in `data` between `start` and `end`, in order."""
        lowered = data[max(0, start - _LONGEST) :].lower()
        first = max(0, start - _LONGEST)
        found = [
            first + place for anchor, place in self._all(lowered, start - first, end - first) if self._is_wanted(anchor)
        ]
        return sorted(set(found))

    def _is_wanted(self, anchor: bytes) -> bool:
        self._counts[anchor] += 1
        if self._counts[anchor] <= MOST_PLACES:
            return True
        self.over[anchor] += 1
        return False

    def _all(self, lowered: bytes, start: int, end: int) -> Iterator[tuple[bytes, int]]:
        for anchors, pattern in _GROUPS:
            for match in pattern.finditer(lowered, start):
                if match.start() >= end:
                    break
                assert match.lastindex is not None
                yield anchors[match.lastindex - 1], match.start()
        for anchor in _ALONE:
            place = lowered.find(anchor, start)
            while 0 <= place < end:
                yield anchor, place
                place = lowered.find(anchor, place + 1)


_LONGEST = max(map(len, ANCHORS))
