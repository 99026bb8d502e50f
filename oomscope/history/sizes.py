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
from oomscope.allocator.rounding import MIN_BLOCK_SIZE, SMALL_SIZE, round_sizes
from oomscope.history.lifetimes import BEFORE, Lifetimes
from oomscope.history.spans import Spans
from oomscope.model import Blocks, IntArray
from oomscope.model.ordering import ascending, stable_order

_MOST_LOOKS = 64
"""Addresses that are looked at behind each block; no real recording takes more than a few dozen."""


def block_sizes(
    lifetimes: Lifetimes, spans: Spans, span: IntArray, blocks: Blocks, config: AllocatorConfig, *, is_whole: bool
) -> tuple[IntArray, IntArray]:
    """The bytes of each lifetime's block, and by how much it may be larger than that.

    Args:
        lifetimes: the device's lifetimes.
        spans: the device's segment spans.
        span: int64[lifetimes], the span that each block lies in, -1 unknown.
        blocks: the final blocks; their sizes are exact.
        config: the recorded settings.
        is_whole: whether no end of a lifetime is missing.

    Returns:
        Two int64 columns: sizes, and what is not known of them (0 nearly everywhere).
    """
    size = round_sizes(np.maximum(lifetimes.requested, 0), config)
    slack = np.zeros(len(size), np.int64)
    if len(spans) and not config.expandable_segments:  # with that setting every rest is split off, in any segment
        cut = np.flatnonzero((span >= 0) & (size > SMALL_SIZE) & ~spans.is_expandable[span])
        end = (spans.address + spans.size)[span[cut]]
        is_plain = is_whole and config.max_split_size is None and not (lifetimes.born[cut] == BEFORE).any()
        found = _at_once(lifetimes, cut, end, size[cut]) if is_plain else None
        if found is not None:
            size[cut] = found
        else:
            size[cut], slack[cut] = _follow(lifetimes, cut, span[cut], end, size[cut], config)
    final = np.flatnonzero(lifetimes.block >= 0)
    size[final] = blocks.size[lifetimes.block[final]]
    slack[final] = 0
    return size, slack


def _at_once(lifetimes: Lifetimes, rows: IntArray, end: IntArray, rounded_size: IntArray) -> IntArray | None:
    """The sizes that `_follow` gives `rows`, where all births and ends are known, so that no two blocks overlap.

    Then only a block that begins within 1 MiB behind a new one matters. The addresses at which blocks ever begin are
    few: they are looked at one after the other, for all rows at once. None where that takes too many looks.
    """
    address, born, gone = lifetimes.address[rows], lifetimes.born[rows], lifetimes.gone[rows]
    is_first = np.diff(address, prepend=-1) != 0  # lifetimes are in the order of addresses, then of time
    known, number = address[is_first], np.cumsum(is_first) - 1
    width = int(gone.max(initial=0)) + 1
    key = number * width + born
    behind = address + rounded_size
    at, rest = np.searchsorted(known, behind), end - behind
    known = np.append(known, np.iinfo(np.int64).max)
    limit = np.minimum(end, behind + SMALL_SIZE + 1)
    left = np.arange(len(rows))
    for _ in range(_MOST_LOOKS):
        left = left[known[at[left]] < limit[left]]
        if not len(left):
            return rounded_size + np.where((rest > 0) & (rest <= SMALL_SIZE), rest, 0)
        last = np.searchsorted(key, at[left] * width + born[left]) - 1  # born at that address before the new one
        is_there = (last >= 0) & (number[last] == at[left]) & (gone[last] > born[left])
        rest[left[is_there]] = (known[at] - behind)[left[is_there]]
        left = left[~is_there]
        at[left] += 1
    return None


def _follow(
    lifetimes: Lifetimes, rows: IntArray, span: IntArray, end: IntArray, rounded_size: IntArray, config: AllocatorConfig
) -> tuple[list[int], list[int]]:
    """Go through births and ends of `rows` in order; size and slack of each from the gap behind it when it was new.

    Args:
        lifetimes: the device's lifetimes.
        rows: those to follow: large, in ordinary segments. All that follows is numbered as they are.
        span: the span of each.
        end: where that span ends.
        rounded_size: the rounded request of each.
        config: the recorded settings.
    """
    address, ends, rounded = lifetimes.address[rows].tolist(), end.tolist(), rounded_size.tolist()
    size, slack = rounded_size.tolist(), [0] * len(rows)
    max_split = config.max_split_size if config.max_split_size is not None else 1 << 62
    # Each row's neighbours: the addresses of live blocks in its span, ascending.
    starts: dict[int, list[int]] = {number: [] for number in ascending(span).tolist()}
    neighbours = [starts[number] for number in span.tolist()]
    unsure: dict[int, int] = {}

    first, events = _in_order(lifetimes.born[rows], lifetimes.gone[rows])
    for row in first:
        insort(neighbours[row], address[row])
    for row in first:
        live, here = neighbours[row], address[row]
        after = bisect_left(live, here) + 1
        rest = (live[after] if after < len(live) else ends[row]) - here - rounded[row]
        if rest <= SMALL_SIZE or rounded[row] >= max_split:  # what reaches max_split_size takes its segment whole
            size[row] += max(rest, 0)
            continue
        # The rest may be all free, or belong to the block in part: what is free in this pool is larger than 1 MiB.
        slack[row] = min(SMALL_SIZE, rest - SMALL_SIZE - MIN_BLOCK_SIZE)
        if slack[row] > 0 and lifetimes.block[rows[row]] < 0:
            unsure[here] = row

    for event in events:
        row = event >> 1
        live, here = neighbours[row], address[row]
        at = bisect_left(live, here)
        if not event & 1:
            if at < len(live) and live[at] == here:
                del live[at]
                if unsure:
                    unsure.pop(here, None)
            continue
        rest = (live[at] if at < len(live) else ends[row]) - here - rounded[row]
        if rest > 0 and (rest <= SMALL_SIZE or rounded[row] >= max_split):
            size[row] += rest
        if unsure and at:
            # A block begins where the free block began, and that is where the one before it ended.
            previous = unsure.get(live[at - 1], -1)
            if previous >= 0 and 0 <= here - live[at - 1] - rounded[previous] <= slack[previous]:
                size[previous], slack[previous] = here - live[at - 1], 0
                del unsure[live[at - 1]]
        live.insert(at, here)
    return size, slack


def _in_order(born: IntArray, gone: IntArray) -> tuple[list[int], list[int]]:
    """Rows from before the recording; and births and ends in order, each as twice its row, plus 1 for a birth."""
    begun = np.flatnonzero(born > BEFORE)
    rows = np.arange(len(born))
    # Where a lifetime had to be ended by the next birth at its address, the end comes first.
    key = np.concatenate([born[begun] * 2 + 1, gone * 2])
    event = np.concatenate([begun * 2 + 1, rows * 2])
    return np.flatnonzero(born == BEFORE).tolist(), event[stable_order(key)].tolist()
