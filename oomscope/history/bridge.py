"""From where a trace was cut off to the final segments: the least that must have happened between.

A file that was cut off holds the final segments, which come first in it, and the beginning of the trace. Curves are
anchored at the end, so the two have to be joined: what the trace left live and the segments do not hold was freed in
between, and what they hold and the trace does not know came in between. Some of that may have been there before the
recording began; nothing in the file tells. So before the cut, bytes are lower bounds: none is counted that was not
certainly there.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from oomscope.allocator.rounding import SMALL_BUFFER
from oomscope.history.lifetimes import pair
from oomscope.model import NO_STACK, Action, Blocks, BlockState, Device, IntArray, Layout, Trace
from oomscope.model.ordering import ascending

_Row = tuple[int, int, int, int, int, int]
"""Action, address, size, stream, stack and pool of an entry."""
_NO_POOL = _NO_TEXT = -1


def bridged(device: Device) -> tuple[Trace, int]:
    """The trace of `device` with entries that lead to its final segments; and how many these are."""
    trace = device.trace
    if not (device.cut and len(trace)):
        return trace, 0
    freed, allocated = _blocks(trace, device.layout)
    given_back, obtained = _segments(trace, device.layout)
    rows = [*freed, *given_back, *obtained, *allocated]
    return _extended(trace, rows), len(rows)


def _extended(trace: Trace, rows: list[_Row]) -> Trace:
    """`trace` with `rows` after its last entry, at the same time."""
    action, address, size, stream, stack, pool = np.array(rows, np.int64).reshape(-1, 6).T
    nothing = np.full(len(rows), _NO_TEXT, np.int32)
    labels = (
        None if column is None else np.concatenate([column, nothing])
        for column in (trace.compile_context, trace.user_metadata, trace.internal_metadata)
    )
    compile_context, user_metadata, internal_metadata = labels
    return replace(
        trace,
        action=np.concatenate([trace.action, action.astype(np.uint8)]),
        address=np.concatenate([trace.address, address]),
        size=np.concatenate([trace.size, size]),
        stream=np.concatenate([trace.stream, stream]),
        time_us=np.concatenate([trace.time_us, np.full(len(rows), trace.time_us[-1])]),
        stack=np.concatenate([trace.stack, stack.astype(np.int32)]),
        pool=np.concatenate([trace.pool, pool.astype(np.int32)]),
        compile_context=compile_context,
        user_metadata=user_metadata,
        internal_metadata=internal_metadata,
    )


def _blocks(trace: Trace, layout: Layout) -> tuple[list[_Row], list[_Row]]:
    """Frees of what the trace left and the final blocks lack; allocations of final blocks that it does not know."""
    blocks = layout.blocks
    live = np.flatnonzero(blocks.is_active)
    values = (blocks.requested_size[live], blocks.state[live], live)
    rows = zip(*(column.tolist() for column in values), strict=True)
    final = dict(zip(blocks.address[live].tolist(), rows, strict=True))
    known, freed = set(), []
    for address, size, stream, stack, last in _left(trace):
        requested, state, row = final.get(address, (None, None, -1))
        may_be_the_same = last == Action.ALLOC or state == BlockState.ACTIVE_PENDING_FREE
        if requested == size and may_be_the_same:
            known.add(row)
            continue
        if last == Action.ALLOC:
            freed.append((int(Action.FREE_REQUESTED), address, size, stream, stack, _NO_POOL))
        freed.append((int(Action.FREE_COMPLETED), address, size, stream, stack, _NO_POOL))
    return freed, _allocated(layout, np.array([row for row in live.tolist() if row not in known], np.int64))


def _left(trace: Trace) -> list[tuple[int, int, int, int, int]]:
    """Address, size, stream, stack and last action of each block that the trace leaves active."""
    pairing = pair(trace, Blocks.empty(), np.zeros(0, np.int64))
    left, lifetimes = pairing.missing, pairing.lifetimes
    entries = trace.entries(Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)[::-1]
    addresses, latest = np.unique(trace.address[entries], return_index=True)
    address = lifetimes.address[left]
    last = trace.action[entries[latest[np.searchsorted(addresses, address)]]]
    columns = (address, lifetimes.requested[left], lifetimes.stream[left], lifetimes.stack[left], last)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _allocated(layout: Layout, rows: IntArray) -> list[_Row]:
    """Allocations of the final blocks `rows`."""
    blocks = layout.blocks
    sizes = np.where(blocks.requested_size[rows] > 0, blocks.requested_size[rows], blocks.size[rows])
    streams = layout.segments.stream[blocks.segment[rows]]
    values = (blocks.address[rows], sizes, streams, blocks.stack[rows])
    return [(int(Action.ALLOC), *row, _NO_POOL) for row in zip(*(column.tolist() for column in values), strict=True)]


def _segments(trace: Trace, layout: Layout) -> tuple[list[_Row], list[_Row]]:
    """What must have been given back and obtained: what was held at the cut against the final segments."""
    given_back: list[_Row] = []
    obtained: list[_Row] = []
    for expandable, obtain, give_back in (
        (False, Action.SEGMENT_ALLOC, Action.SEGMENT_FREE),
        (True, Action.SEGMENT_MAP, Action.SEGMENT_UNMAP),
    ):
        rows = np.flatnonzero(layout.segments.is_expandable == expandable)
        touched = _touched(trace, layout, rows, whole=not expandable)
        pieces = _Pieces(trace, layout, rows, obtain, give_back, touched)
        for low, high in pieces.held.keys() - pieces.final.keys():
            given_back.append((int(give_back), low, high - low, pieces.held[low, high], NO_STACK, _NO_POOL))
        for (low, high), row in pieces.final.items():
            # What the trace never obtained or gave back, although blocks of it lie there, was there before it.
            is_older = (low, high) not in pieces.known and _is_within(touched, low, high)
            if (low, high) not in pieces.held and not is_older:
                stream, stack, pool = (int(getattr(layout.segments, name)[row]) for name in ("stream", "stack", "pool"))
                obtained.append((int(obtain), low, high - low, stream, stack, pool))
    return sorted(given_back), sorted(obtained)


class _Pieces:
    """Pieces of memory that were always obtained and given back as one, each from `low` to `high`.

    Attributes:
        held: those that the trace leaves obtained, with their streams.
        known: those that it obtained or gave back.
        final: those that the final segments hold, with the row of the segment.
    """

    def __init__(
        self, trace: Trace, layout: Layout, rows: IntArray, obtain: Action, give_back: Action, touched: IntArray
    ) -> None:
        events = trace.entries(obtain, give_back)
        low, end = trace.address[events], trace.address[events] + trace.size[events]
        first, last = layout.segments.address[rows], (layout.segments.address + layout.segments.total_size)[rows]
        bounds = ascending(np.concatenate([low, end, first, last, touched.ravel()]))
        self.held: dict[tuple[int, int], int] = {}
        self.known: set[tuple[int, int]] = set()
        columns = (low, end, trace.action[events], trace.stream[events])
        for begin, stop, action, stream in zip(*(column.tolist() for column in columns), strict=True):
            for piece in _cut(bounds, begin, stop):
                self.known.add(piece)
                if action == obtain:
                    self.held[piece] = stream
                else:
                    self.held.pop(piece, None)
        ends = zip(first.tolist(), last.tolist(), rows.tolist(), strict=True)
        self.final = {piece: row for begin, stop, row in ends for piece in _cut(bounds, begin, stop)}


def _cut(bounds: IntArray, low: int, high: int) -> list[tuple[int, int]]:
    at = bounds[np.searchsorted(bounds, low) : np.searchsorted(bounds, high) + 1].tolist()
    return list(pairwise(at))


def _touched(trace: Trace, layout: Layout, rows: IntArray, *, whole: bool) -> IntArray:
    """int64[2, ranges]: from where to where blocks of the trace show memory of the final segments `rows` to be there.

    All of a segment that is there as a `whole`; of an expandable one the pages that the blocks lie in, for more of it
    may have been mapped since. Ranges are apart, and ascending.
    """
    events = trace.entries(Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)
    order = np.argsort(layout.segments.address[rows], kind="stable")
    first, size = layout.segments.address[rows][order], layout.segments.total_size[rows][order]
    at = np.searchsorted(first, trace.address[events], side="right") - 1
    inside = (at >= 0) & (trace.address[events] < (first + size)[at]) if len(first) else np.zeros(len(at), np.bool_)
    at, address, length = at[inside], trace.address[events][inside], trace.size[events][inside]
    if whole:
        return np.stack([first[ascending(at)], (first + size)[ascending(at)]])
    low = first[at] + (address - first[at]) // SMALL_BUFFER * SMALL_BUFFER
    high = first[at] - (first[at] - address - np.maximum(length, 1)) // SMALL_BUFFER * SMALL_BUFFER
    return _united(low, np.minimum(high, (first + size)[at]))


def _united(low: IntArray, high: IntArray) -> IntArray:
    """int64[2, ranges]: the same addresses in ranges that are apart."""
    if not len(low):
        return np.zeros((2, 0), np.int64)
    order = np.argsort(low, kind="stable")
    low, high = low[order], np.maximum.accumulate(high[order])
    begins = np.flatnonzero(np.append(True, low[1:] > high[:-1]))
    return np.stack([low[begins], high[np.append(begins[1:], len(low)) - 1]])


def _is_within(ranges: IntArray, low: int, high: int) -> bool:
    at = int(np.searchsorted(ranges[0], low, side="right")) - 1
    return at >= 0 and high <= int(ranges[1, at])
