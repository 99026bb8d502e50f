"""Where the CUDA driver puts segments, as far as its habits are known.

Seen in the addresses of several thousand segments on an H200 (driver 580, CUDA 13): memory comes in chunks of whole
32 MiB, each directly below the last one, as Linux hands out addresses. What a segment leaves of its chunk serves later
segments that fit, the lowest first. A chunk in which nothing is left goes back, and serves later chunks that fit, the
highest first. The driver promises none of this, and other libraries take addresses as well, so that an answer that
depends on it is given with its range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

_CHUNK = 32 << 20
_TOP = 1 << 47
"""Where user space ends, and a process without any recorded segment begins."""

_Range = tuple[int, int]
"""From here, to here (excluded)."""


@dataclass(slots=True)
class _Chunk:
    """Addresses that were obtained at once.

    Attributes:
        end: behind its last byte.
        segments: how many lie in it.
        free: the ranges between them, ascending.
    """

    end: int
    segments: int = 0
    free: list[_Range] = field(default_factory=list)


class DriverAddresses:
    """Gives out addresses as the driver does, from the recorded segments on that it is told of."""

    def __init__(self) -> None:
        self._chunks: dict[int, _Chunk] = {}
        self._starts: list[int] = []
        self._gaps: list[_Range] = []
        self._front = _TOP
        # No free range in a chunk is larger: most requests need not look.
        self._largest_free = 0

    def segment(self, size: int) -> int:
        """Where cudaMalloc puts a segment of `size` bytes."""
        if size <= self._largest_free:
            address = self._in_a_chunk(size)
            if address is not None:
                self.adopt(address, size)
                return address
        address = self._new_chunk(_whole_chunks(size))
        self.adopt(address, size)
        return address

    def adopt(self, address: int, size: int) -> None:
        """Learn of a segment that lies at `address`."""
        start = self._chunk_of(address)
        if start is None:
            start = self._open(address, size)
        chunk = self._chunks[start]
        if address + size > chunk.end:
            self._widen(start, chunk, address + size)
        chunk.segments += 1
        chunk.free = [piece for part in chunk.free for piece in _without(part, address, address + size)]

    def freed(self, address: int, size: int) -> None:
        """Learn that the segment at `address` is gone."""
        start = self._chunk_of(address)
        if start is None:
            return
        chunk = self._chunks[start]
        chunk.segments -= 1
        if chunk.segments:
            insort(chunk.free, (address, address + size))
            chunk.free = _joined(chunk.free)
            self._largest_free = max(self._largest_free, max(end - begin for begin, end in chunk.free))
            return
        del self._chunks[start]
        del self._starts[bisect_left(self._starts, start)]
        insort(self._gaps, (start, chunk.end))
        self._gaps = _joined(self._gaps)
        if self._gaps[0][0] == self._front:
            self._front = self._gaps.pop(0)[1]

    def reserve(self, size: int) -> int:
        """Where an expandable segment reserves `size` bytes of addresses."""
        return self._new_chunk(_whole_chunks(size))

    def release(self, base: int, size: int) -> None:
        """Take back what `reserve` gave."""
        insort(self._gaps, (base, base + _whole_chunks(size)))
        self._gaps = _joined(self._gaps)

    def mapped(self, size: int) -> None:
        """Nothing: pages have no addresses of their own."""
        del size

    def _in_a_chunk(self, size: int) -> int | None:
        """The lowest free range that is large enough."""
        largest = 0
        for start in self._starts:
            for begin, end in self._chunks[start].free:
                if end - begin >= size:
                    return begin
                largest = max(largest, end - begin)
        self._largest_free = largest
        return None

    def _new_chunk(self, size: int) -> int:
        """Where a chunk of `size` bytes goes: the top of the highest gap that is large enough, else below the last."""
        for at in range(len(self._gaps) - 1, -1, -1):
            begin, end = self._gaps[at]
            if end - begin >= size:
                self._gaps[at : at + 1] = [(begin, end - size)] if end - size > begin else []
                return end - size
        begin = self._front - size
        # Below the last chunk may lie an older one.
        while (at := bisect_left(self._starts, begin + size) - 1) >= 0 and self._chunks[self._starts[at]].end > begin:
            begin = self._starts[at] - size
        if begin < 0:
            # Beyond any real process: start again above everything.
            begin = max((chunk.end for chunk in self._chunks.values()), default=_TOP) + _TOP
        self._front = begin
        return begin

    def _open(self, address: int, size: int) -> int:
        """Begin a chunk at `address`."""
        aligned = address % _CHUNK == 0
        end = address + (_whole_chunks(size) if aligned else size)
        at = bisect_right(self._starts, address)
        if at < len(self._starts):
            end = max(min(end, self._starts[at]), address + size)
        inside_a_gap = any(begin < end and address < stop for begin, stop in self._gaps)
        self._gaps = [piece for gap in self._gaps for piece in _without(gap, address, end)]
        if not inside_a_gap:
            self._front = address // _CHUNK * _CHUNK
        self._chunks[address] = _Chunk(end, free=[(address, end)])
        insort(self._starts, address)
        self._largest_free = max(self._largest_free, end - address)
        return address

    def _widen(self, start: int, chunk: _Chunk, end: int) -> None:
        """A segment that reaches beyond the chunk shows that it is larger than was thought."""
        at = bisect_right(self._starts, start)
        widened = -(-end // _CHUNK) * _CHUNK
        if at < len(self._starts):
            widened = max(min(widened, self._starts[at]), end)
        chunk.free = _joined([*chunk.free, (chunk.end, widened)])
        chunk.end = widened
        self._gaps = [piece for gap in self._gaps for piece in _without(gap, start, widened)]
        self._largest_free = max(self._largest_free, max(stop - begin for begin, stop in chunk.free))

    def _chunk_of(self, address: int) -> int | None:
        at = bisect_right(self._starts, address) - 1
        if at < 0 or self._chunks[self._starts[at]].end <= address:
            return None
        return self._starts[at]


def _whole_chunks(size: int) -> int:
    return -(-size // _CHUNK) * _CHUNK


def _without(part: _Range, begin: int, end: int) -> list[_Range]:
    """What is left of `part` without [begin, end)."""
    pieces = ((part[0], min(part[1], begin)), (max(part[0], end), part[1]))
    return [piece for piece in pieces if piece[0] < piece[1]]


def _joined(ranges: list[_Range]) -> list[_Range]:
    """Ascending ranges, with those that touch made one."""
    joined: list[_Range] = []
    for begin, end in ranges:
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined
