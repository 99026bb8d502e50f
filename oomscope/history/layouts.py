"""The layout of a device's memory at any entry, rebuilt from lifetimes and spans."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from oomscope.history.lifetimes import Lifetimes
from oomscope.history.spans import Spans
from oomscope.model import Blocks, BlockState, IntArray, Layout, Segments


def layout_at(entry: int, lifetimes: Lifetimes, size: IntArray, spans: Spans) -> Layout:
    """Segments and blocks once `entry` has happened.

    Args:
        entry: a trace entry; -1 for the start of the recording.
        lifetimes: the device's lifetimes.
        size: int64[lifetimes], bytes of each block.
        spans: the device's segment spans.

    Returns:
        The layout, as torch would have written it: mapped pieces joined to runs, free neighbours merged.
    """
    segments = _segments(spans, np.flatnonzero(spans.there_at(entry)))
    rows = np.flatnonzero(lifetimes.active_at(entry))
    rows = rows[np.argsort(lifetimes.address[rows], kind="stable")]
    segment = np.searchsorted(segments.address, lifetimes.address[rows], side="right") - 1
    inside = (segment >= 0) & (
        lifetimes.address[rows] < segments.address[segment] + segments.total_size[segment]
        if len(segments)
        else np.zeros(len(rows), np.bool_)
    )
    rows, segment = rows[inside], segment[inside]
    return _with_holes(entry, lifetimes, size, segments, rows, segment)


def _segments(spans: Spans, rows: IntArray) -> Segments:
    """Spans as segments; neighbouring mapped pieces of one stream and pool are one run."""
    end = spans.address[rows] + spans.size[rows]
    joins = np.zeros(len(rows), np.bool_)
    joins[1:] = (
        (end[:-1] == spans.address[rows][1:])
        & spans.is_expandable[rows][1:]
        & spans.is_expandable[rows][:-1]
        & (spans.stream[rows][1:] == spans.stream[rows][:-1])
        & (spans.pool[rows][1:] == spans.pool[rows][:-1])
        & (spans.is_large[rows][1:] == spans.is_large[rows][:-1])
    )
    first = np.flatnonzero(~joins)
    heads = rows[first]
    total = np.add.reduceat(spans.size[rows], first) if len(rows) else np.zeros(0, np.int64)
    return Segments(
        address=spans.address[heads],
        total_size=total,
        stream=spans.stream[heads],
        is_large=spans.is_large[heads],
        is_expandable=spans.is_expandable[heads],
        pool=spans.pool[heads],
        stack=spans.stack[heads],
        first_block=np.zeros(len(heads) + 1, np.int64),
    )


def _with_holes(
    entry: int, lifetimes: Lifetimes, size: IntArray, segments: Segments, rows: IntArray, segment: IntArray
) -> Layout:
    """Live blocks with an inactive block in every gap before, between and behind them."""
    address, length = lifetimes.address[rows], size[rows]
    bounds_start = np.concatenate([segments.address, address + length])
    owner = np.concatenate([np.arange(len(segments)), segment])
    order = np.lexsort((bounds_start, owner))
    # Within a segment the k-th gap begins at its start or behind a block and ends at the next block or its end.
    gap_start, gap_segment = bounds_start[order], owner[order]
    bounds_end = np.concatenate([address, segments.address + segments.total_size])
    end_owner = np.concatenate([segment, np.arange(len(segments))])
    gap_end = bounds_end[np.lexsort((bounds_end, end_owner))]
    gap = np.flatnonzero(gap_end > gap_start)

    all_address = np.concatenate([address, gap_start[gap]])
    order = np.argsort(all_address, kind="stable")
    free = len(gap)
    state = np.where(
        entry < lifetimes.freed[rows], np.uint8(BlockState.ACTIVE_ALLOCATED), np.uint8(BlockState.ACTIVE_PENDING_FREE)
    ).astype(np.uint8)
    of_segment = np.concatenate([segment, gap_segment[gap]])[order]
    first_block = np.searchsorted(of_segment, np.arange(len(segments) + 1))
    blocks = Blocks(
        address=all_address[order],
        size=np.concatenate([length, (gap_end - gap_start)[gap]])[order],
        requested_size=np.concatenate([lifetimes.requested[rows], np.zeros(free, np.int64)])[order],
        state=np.concatenate([state, np.zeros(free, np.uint8)])[order],
        stack=np.concatenate([lifetimes.stack[rows], np.full(free, -1, np.int32)])[order],
        segment=of_segment,
    )
    columns = {one.name: getattr(segments, one.name) for one in fields(Segments) if one.name != "first_block"}
    return Layout(Segments(**columns, first_block=first_block.astype(np.int64)), blocks)
