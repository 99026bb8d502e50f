"""The exact sizes of blocks.

An entry carries the bytes that were asked for; statistics and the device's memory are counted in blocks. In the small
pool and in expandable segments a block is its rounded request. A large block of an ordinary segment may be more: what
is left of the free block it was cut from goes back to the pool only if it is larger than 1 MiB and the request is
below ``max_split_size`` (should_split in c10/cuda/CUDACachingAllocator.cpp).

The free block ends where the next live block begins, or with the segment, because the allocator always merges free
neighbours. So the addresses of the live blocks tell the size, whatever happened before the recording.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.rounding import SMALL_SIZE, round_sizes
from oomscope.history.lifetimes import BEFORE, Lifetimes
from oomscope.history.spans import Spans
from oomscope.model import Blocks, IntArray


def block_sizes(
    lifetimes: Lifetimes, spans: Spans, span: IntArray, blocks: Blocks, config: AllocatorConfig
) -> tuple[IntArray, IntArray]:
    """The bytes of each lifetime's block, and by how much it may be larger than that.

    Args:
        lifetimes: the device's lifetimes.
        spans: the device's segment spans.
        span: int64[lifetimes], the span that each block lies in, -1 unknown.
        blocks: the final blocks; their sizes are exact.
        config: the recorded settings.

    Returns:
        Two int64 columns: sizes, and what is not known of them (0 nearly everywhere).
    """
    size = round_sizes(np.maximum(lifetimes.requested, 0), config)
    slack = np.zeros(len(size), np.int64)
    large = size > SMALL_SIZE
    cut = np.flatnonzero((span >= 0) & large & ~spans.is_expandable[span] if len(spans) else np.zeros(0, np.bool_))
    _follow(cut, lifetimes, spans, span, size, slack, config)
    final = np.flatnonzero(lifetimes.block >= 0)
    size[final] = blocks.size[lifetimes.block[final]]
    slack[final] = 0
    return size, slack


def _follow(
    rows: IntArray,
    lifetimes: Lifetimes,
    spans: Spans,
    span: IntArray,
    size: IntArray,
    slack: IntArray,
    config: AllocatorConfig,
) -> None:
    """Go through births and ends of `rows` in order, and set `size` and `slack` from the gap behind each new block."""
    first, events = _in_order(rows, lifetimes)
    starts: dict[int, list[int]] = {}
    owner: dict[int, int] = {}
    address, where = lifetimes.address.tolist(), span.tolist()
    ends = (spans.address + spans.size).tolist()
    rounded = size.tolist()
    max_split = config.max_split_size if config.max_split_size is not None else 1 << 62
    unsure: set[int] = set()

    for row in first:
        insort(starts.setdefault(where[row], []), address[row])
        owner[address[row]] = row
    for row in first:
        live = starts[where[row]]
        after = bisect_left(live, address[row]) + 1
        gap = (live[after] if after < len(live) else ends[where[row]]) - address[row]
        if gap - rounded[row] <= SMALL_SIZE:
            size[row] = max(gap, rounded[row])
        elif lifetimes.block[row] < 0:
            # The gap may be all free, or begin with an unsplit rest: free blocks of this pool are larger than 1 MiB.
            slack[row] = gap - rounded[row] if rounded[row] >= max_split else SMALL_SIZE
            unsure.add(row)

    for row, is_birth in events:
        here = address[row]
        live = starts.setdefault(where[row], [])
        at = bisect_left(live, here)
        if not is_birth:
            if at < len(live) and live[at] == here and owner[here] == row:
                del live[at]
                unsure.discard(row)
            continue
        gap = (live[at] if at < len(live) else ends[where[row]]) - here
        if gap - rounded[row] <= SMALL_SIZE or rounded[row] >= max_split:
            size[row] = max(gap, rounded[row])
        if unsure and at:
            # A block that begins within the unknown rest of the one before it shows where that one ended.
            previous = owner[live[at - 1]]
            if previous in unsure and here - live[at - 1] - rounded[previous] <= SMALL_SIZE:
                size[previous], slack[previous] = here - live[at - 1], 0
                unsure.discard(previous)
        live.insert(at, here)
        owner[here] = row


def _in_order(rows: IntArray, lifetimes: Lifetimes) -> tuple[list[int], list[tuple[int, bool]]]:
    """Rows that were there before the recording, and births and ends of all `rows` as (row, is birth) in order."""
    born, gone = lifetimes.born[rows], lifetimes.gone[rows]
    begun = born > BEFORE
    entry = np.concatenate([born[begun], gone])
    row = np.concatenate([rows[begun], rows])
    is_birth = np.arange(len(entry)) < np.count_nonzero(begun)
    # Where a lifetime had to be ended by the next birth at its address, the end comes first.
    order = np.lexsort((is_birth, entry))
    return rows[~begun].tolist(), list(zip(row[order].tolist(), is_birth[order].tolist(), strict=True))
