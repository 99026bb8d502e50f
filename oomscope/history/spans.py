"""Segment spans: when each piece of device memory was obtained and given back."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from oomscope.allocator.config import LARGE_SEGMENT_SIZE
from oomscope.allocator.rounding import SMALL_BUFFER
from oomscope.frozen import frozen
from oomscope.history.lifetimes import BEFORE
from oomscope.model import NO_STACK, Action, BoolArray, IntArray, Layout, Trace
from oomscope.model.arrays import StackArray
from oomscope.model.ordering import ascending


@frozen(eq=False)
class Spans:
    """Memory obtained from the device, in address order, then time; one row a segment, or a piece of a mapped range.

    A piece is the smallest range of an expandable segment that was always mapped and unmapped as one.
    A row is there while ``begin <= t < end``.

    Attributes:
        address: int64, start.
        size: int64, bytes.
        begin: int64, the entry that obtained it, `BEFORE` for what was there when the recording began.
        end: int64, the entry that gave it back; the number of entries for what is still there.
        stream: int64.
        is_large, is_expandable: as in `Segments`.
        pool: int32, number of the pool; a private segment freed before the end counts as the default pool's unless
            its entries name their pool (torch 2.12+).
        stack: int32, where it was obtained.
    """

    address: IntArray
    size: IntArray
    begin: IntArray
    end: IntArray
    stream: IntArray
    is_large: BoolArray
    is_expandable: BoolArray
    pool: StackArray
    stack: StackArray

    def __len__(self) -> int:
        return len(self.address)

    def there_at(self, entry: int) -> BoolArray:
        """Which rows are reserved once `entry` has happened."""
        return (self.begin <= entry) & (entry < self.end)


@frozen(eq=False)
class _Ranges:
    """Ranges of addresses that events or final segments are about; `entry` is the trace's length for the latter."""

    address: IntArray
    size: IntArray
    entry: IntArray
    obtains: BoolArray
    stream: IntArray
    is_large: BoolArray
    pool: StackArray
    stack: StackArray

    def take(self, rows: IntArray) -> _Ranges:
        return _Ranges(*(getattr(self, one.name)[rows] for one in fields(self)))


def find_spans(trace: Trace, layout: Layout) -> Spans:
    """Pair what obtains memory with what gives it back, anchored at the final segments."""
    whole = _ranges(trace, layout, Action.SEGMENT_ALLOC, Action.SEGMENT_FREE, expandable=False)
    mapped = _ranges(trace, layout, Action.SEGMENT_MAP, Action.SEGMENT_UNMAP, expandable=True)
    tables = [
        _pair(whole, len(trace), expandable=False),
        _pair(_cut(mapped), len(trace), expandable=True),
    ]
    columns = [np.concatenate([getattr(table, one.name) for table in tables]) for one in fields(Spans)]
    order = np.lexsort((columns[2], columns[0]))
    return Spans(*(column[order] for column in columns))


def _ranges(trace: Trace, layout: Layout, obtain: Action, give_back: Action, *, expandable: bool) -> _Ranges:
    """The events with one of two actions, and after them the final segments of that kind."""
    events = trace.entries(obtain, give_back)
    final = np.flatnonzero(layout.segments.is_expandable == expandable)
    segments = layout.segments
    # torch asks the device for exactly 2 MiB only on behalf of the small pool; but it may unmap several pages at once.
    sizes = trace.size[events]
    is_large = sizes % LARGE_SEGMENT_SIZE == 0 if expandable else sizes != SMALL_BUFFER
    return _Ranges(
        address=np.concatenate([trace.address[events], segments.address[final]]),
        size=np.concatenate([trace.size[events], segments.total_size[final]]),
        entry=np.concatenate([events, np.full(len(final), len(trace), np.int64)]),
        obtains=np.concatenate([trace.action[events] == obtain, np.zeros(len(final), np.bool_)]),
        stream=np.concatenate([trace.stream[events], segments.stream[final]]),
        is_large=np.concatenate([is_large, segments.is_large[final]]),
        pool=np.concatenate([trace.pool[events], segments.pool[final]]),
        stack=np.concatenate([trace.stack[events], segments.stack[final]]),
    )


def _cut(ranges: _Ranges) -> _Ranges:
    """Ranges cut at every boundary of any of them, so that two pieces are the same or apart."""
    bounds = ascending(np.concatenate([ranges.address, ranges.address + ranges.size]))
    low = np.searchsorted(bounds, ranges.address)
    pieces = np.searchsorted(bounds, ranges.address + ranges.size) - low
    row = np.repeat(np.arange(len(low)), pieces)
    piece = low[row] + (np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces))
    cut = ranges.take(row)
    return _Ranges(
        bounds[piece], bounds[piece + 1] - bounds[piece], cut.entry, cut.obtains, cut.stream, cut.is_large, cut.pool,
        cut.stack,
    )  # fmt: skip


def _pair(ranges: _Ranges, end: int, *, expandable: bool) -> Spans:
    """One span for each stay of a range: from what obtained it to what gave it back or to the final segments."""
    ranges = ranges.take(np.lexsort((ranges.entry, ranges.address)))
    count = len(ranges.address)
    same = np.zeros(count, np.bool_)
    same[1:] = ranges.address[1:] == ranges.address[:-1]
    before_obtains = np.zeros(count, np.bool_)
    before_obtains[1:] = ranges.obtains[:-1]
    # A give-back, or a final segment, closes the obtaining row before it, or what was there before the recording.
    closing = np.flatnonzero(~ranges.obtains)
    paired = same[closing] & before_obtains[closing]
    opening = np.where(paired, closing - 1, closing)
    final = ranges.entry[closing] == end
    # The final segment knows its pool and size class best; for the rest the opening entry is all there is.
    source = np.where(final, closing, opening)
    stack = np.where(ranges.stack[opening] == NO_STACK, ranges.stack[closing], ranges.stack[opening])
    return Spans(
        address=ranges.address[opening],
        size=ranges.size[source],
        begin=np.where(paired, ranges.entry[opening], BEFORE),
        end=ranges.entry[closing],
        stream=ranges.stream[source],
        is_large=ranges.is_large[source],
        is_expandable=np.full(len(closing), expandable, np.bool_),
        pool=np.maximum(ranges.pool[source], 0),
        stack=np.where(paired | final, stack, NO_STACK).astype(np.int32),
    )


def locate(spans: Spans, address: IntArray, entry: IntArray) -> IntArray:
    """The row of `spans` that holds each `address` once `entry` has happened, -1 where none does.

    Args:
        spans: the device's spans.
        address: int64[n].
        entry: int64[n]; `BEFORE` for the start of the recording.
    """
    if not len(spans):
        return np.full(len(address), -1, np.int64)
    # Between two neighbouring bounds a stretch of addresses always lies in the same rows, ordered by `begin`.
    bounds = ascending(np.concatenate([spans.address, spans.address + spans.size]))
    low = np.searchsorted(bounds, spans.address)
    stretches = np.searchsorted(bounds, spans.address + spans.size) - low
    row = np.repeat(np.arange(len(spans)), stretches)
    if not len(row):  # spans of no bytes hold nothing
        return np.full(len(address), -1, np.int64)
    stretch = low[row] + (np.arange(len(row)) - np.repeat(np.cumsum(stretches) - stretches, stretches))
    width = int(max(spans.end.max(initial=0), entry.max(initial=0))) + 2
    key = stretch * width + spans.begin[row] + 1
    order = np.argsort(key)
    key, row = key[order], row[order]
    wanted = np.searchsorted(bounds, address, side="right") - 1
    at = np.searchsorted(key, wanted * width + entry + 1, side="right") - 1
    found = row[np.maximum(at, 0)]
    holds = (
        (at >= 0)
        & (spans.address[found] <= address)
        & (address < spans.address[found] + spans.size[found])
        & (spans.begin[found] <= entry)
        & (entry < spans.end[found])
    )
    return np.where(holds, found, -1)
