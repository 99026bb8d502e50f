"""Finds all anchors of all families in bytes, a few passes for a hundred of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from oomscope.messages.families import ANCHORS

MOST_PLACES = 300
"""Places of each anchor that are read; of more, nobody reads what is said about them."""
_SHARED = (
    b"error", b"memory", b"alloc", b"137", b"-9", b"kill", b"status", b"cache", b"cuda", b"resource", b"algorithm",
    b"signal", b" file", b"vram", b"buffer", b"fail", b"store", b"available",
)  # fmt: skip
"""Words of many anchors: one search for the word, with what must stand around it, is faster than one for each."""


def _pattern(word: bytes, anchors: list[bytes]) -> re.Pattern[bytes]:
    """`word` wherever one of `anchors` stands around it; the group that matched tells which.

    The two characters before the word are looked at first: they rule nearly all places out where a log is full of it.
    """
    led: list[tuple[bytes, bytes]] = []
    bare: list[tuple[bytes, bytes]] = []
    for anchor in anchors:
        before, _, after = anchor.partition(word)
        group = b"((?<=" + re.escape(before + word) + b")" + re.escape(after) + b")"
        (led if len(before) > 1 else bare).append((before, group))
    ways = [group for _, group in bare]
    if led:
        last, next_to_last = ({before[index] for before, _ in led} for index in (-1, -2))
        quick = b"(?<=" + _any_of(next_to_last) + _any_of(last) + re.escape(word) + b")"
        ways.insert(0, quick + b"(?:" + b"|".join(group for _, group in led) + b")")
    return re.compile(re.escape(word) + b"(?:" + b"|".join(ways) + b")")


def _any_of(characters: set[int]) -> bytes:
    return b"[" + b"".join(re.escape(bytes([one])) for one in sorted(characters)) + b"]"


def _grouped() -> tuple[list[tuple[list[bytes], re.Pattern[bytes]]], list[bytes]]:
    groups: dict[bytes, list[bytes]] = {word: [] for word in _SHARED}
    alone: list[bytes] = []
    for anchor in ANCHORS:
        word = next((word for word in _SHARED if word in anchor), None)
        (groups[word] if word else alone).append(anchor)
    found = []
    for word, anchors in groups.items():
        # In the order in which the pattern counts them.
        anchors.sort(key=lambda anchor: anchor.index(word) < 2)
        found.append((anchors, _pattern(word, anchors)))
    return found, alone


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
        is_ascii = lowered.isascii()
        for anchor in _ALONE:
            if is_ascii and not anchor.isascii():
                continue
            place = lowered.find(anchor, start)
            while 0 <= place < end:
                yield anchor, place
                place = lowered.find(anchor, place + 1)


_LONGEST = max(map(len, ANCHORS))
COMMONEST = b"out of memory"
"""Counts messages where they are only counted."""
