"""Where the device puts new segments.

The allocator prefers, among free blocks of one size, the lowest address. Addresses that cudaMalloc never gave out
in the recorded run cannot be known, so a replay is told in which order to make them up, and several orders tell
whether it matters.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from random import Random
from typing import Protocol

from oomscope.allocator.block import ADDRESS_SPACE

_ALIGNMENT = 2 << 20
_REGIONS = 64


class Addresses(Protocol):
    """What gives out addresses."""

    def segment(self, size: int) -> int:
        """Where cudaMalloc puts a segment of `size` bytes."""

    def freed(self, address: int, size: int) -> None:
        """Hear of a cudaFree."""

    def adopt(self, address: int, size: int) -> None:
        """Hear of a segment that lies at `address` though `segment` did not say so."""

    def reserve(self, size: int) -> int:
        """Where an expandable segment reserves `size` bytes of addresses."""

    def release(self, base: int, size: int) -> None:
        """Take back what `reserve` gave."""

    def mapped(self, size: int) -> None:
        """Hear that an expandable segment mapped `size` bytes."""


class _Order(Addresses, Protocol):
    """Reuses the ranges of expandable segments that are gone, for each is as large as the device."""

    _returned: dict[int, list[int]]

    def freed(self, address: int, size: int) -> None:
        """Nothing: an order does not depend on what is gone."""
        del address, size

    def adopt(self, address: int, size: int) -> None:
        """Nothing: orders lie apart from all recorded addresses."""
        del address, size

    def reserve(self, size: int) -> int:
        """Where an expandable segment reserves `size` bytes of addresses."""
        returned = self._returned.get(size)
        return returned.pop() if returned else self.segment(size)

    def release(self, base: int, size: int) -> None:
        """Take back what `reserve` gave."""
        self._returned.setdefault(size, []).append(base)

    def mapped(self, size: int) -> None:
        """Nothing: an order does not depend on what is mapped."""
        del size


class Ascending(_Order):
    """Every new segment lies above all others."""

    def __init__(self, begin: int = 0, end: int = ADDRESS_SPACE) -> None:
        self._returned = {}
        self._begin, self._end = begin, end
        self._next = begin

    def segment(self, size: int) -> int:
        """Where cudaMalloc puts a segment of `size` bytes."""
        # Behind the last address, the oldest ranges come again; their segments are long gone.
        base = self._next if self._next + size <= self._end else self._begin
        self._next = base + _aligned(size)
        return base


class Descending(_Order):
    """Every new segment lies below all others."""

    def __init__(self, begin: int = 0, end: int = ADDRESS_SPACE) -> None:
        self._returned = {}
        self._begin, self._end = begin, end
        self._next = end

    def segment(self, size: int) -> int:
        """Where cudaMalloc puts a segment of `size` bytes."""
        room = _aligned(size)
        top = self._next if self._next - room >= self._begin else self._end
        self._next = top - room
        return self._next


class Shuffled(_Order):
    """New segments lie in no particular order, the same for the same `seed`."""

    def __init__(self, seed: int, begin: int = 0, end: int = ADDRESS_SPACE) -> None:
        self._returned = {}
        self._choose = Random(seed).randrange  # noqa: S311 - an order, not a secret
        width = (end - begin) // _REGIONS
        self._regions = [Ascending(begin + at * width, begin + (at + 1) * width) for at in range(_REGIONS)]

    def segment(self, size: int) -> int:
        """Where cudaMalloc puts a segment of `size` bytes."""
        return self._regions[self._choose(_REGIONS)].segment(size)


class Recorded:
    """The addresses of the recorded run as long as the replay asks for the same segments, then those of `beyond`.

    Attributes:
        diverged: whether the replay has asked for another segment than the recorded run.
    """

    def __init__(self, addresses: Sequence[int], sizes: Sequence[int], beyond: Addresses) -> None:
        """Follow a recording.

        Args:
            addresses: where each segment_alloc and segment_map of the recording lies, in their order.
            sizes: their bytes.
            beyond: what serves once the replay goes its own way; it is told of what was there until then.
        """
        self._addresses, self._sizes = addresses, sizes
        self._beyond = beyond
        self._next = 0
        self._live: dict[int, int] = {}
        self._begins: list[int] = []
        self.diverged = False

    def segment(self, size: int) -> int:
        """Where cudaMalloc puts a segment of `size` bytes."""
        address = self._recorded_address(size)
        # The recorded run may have freed what this one still holds.
        if not self.diverged and self._is_taken(address, size):
            self.diverged = True
        if self.diverged:
            return self._beyond.segment(size)
        self._next += 1
        self.adopt(address, size)
        return address

    def _is_taken(self, address: int, size: int) -> bool:
        """Whether a live segment lies there: none lies in another, so that only its neighbours can."""
        at = bisect_left(self._begins, address + size)
        return at > 0 and self._live[self._begins[at - 1]] > address

    def freed(self, address: int, size: int) -> None:
        """Hear of a cudaFree."""
        if self._live.pop(address, None) is not None:
            del self._begins[bisect_left(self._begins, address)]
        self._beyond.freed(address, size)

    def adopt(self, address: int, size: int) -> None:
        """Hear of a segment from before the recording."""
        if address not in self._live:
            insort(self._begins, address)
        self._live[address] = address + size
        self._beyond.adopt(address, size)

    def reserve(self, size: int) -> int:
        """Where an expandable segment reserves `size` bytes of addresses."""
        # A fresh expandable segment maps its first page first, so that the next map tells its base.
        if self.diverged or self._next >= len(self._addresses):
            return self._beyond.reserve(size)
        return self._addresses[self._next]

    def release(self, base: int, size: int) -> None:
        """Nothing: a recording says where the next range lies."""

    def mapped(self, size: int) -> None:
        """Step over the recorded map."""
        self._recorded_address(size)
        self._next += 1

    def _recorded_address(self, size: int) -> int:
        if not self.diverged and (self._next >= len(self._sizes) or self._sizes[self._next] != size):
            self.diverged = True
        return 0 if self.diverged else self._addresses[self._next]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
