"""The free bytes at the instant of an OOM, by what they were worth to the request that failed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.rounding import is_small
from oomscope.analysis.memory.fragmentation import FreeBytes, free_bytes
from oomscope.analysis.memory.records import FreeForRequest
from oomscope.model import BlockState, BoolArray, Layout


def free_for_request(
    layout: Layout, config: AllocatorConfig, *, size: int, stream: int, pool: int, room: int
) -> FreeForRequest:
    """Sort the inactive bytes of `layout` by whether a request could have used them.

    Args:
        layout: segments and blocks when the request failed.
        config: the recorded settings.
        size: rounded bytes of the request; decides between the small and the large pool.
        stream: the stream of the request.
        pool: number of the pool that it was routed to.
        room: bytes that could still have been obtained from the device.
    """
    segments, blocks = layout.segments, layout.blocks
    free, of = free_bytes(layout, config), blocks.segment
    same_pool = segments.pool[of] == pool
    same_stream = segments.stream[of] == stream
    same_class = segments.is_large[of] == (not is_small(size))
    usable = same_pool & same_stream & same_class
    foreign_pool = ~same_pool & (segments.pool[of] != 0)
    largest = np.where(usable, free.inactive, 0) + np.where(usable & _can_grow(layout), room, 0)
    elsewhere = same_pool & ~same_stream & same_class
    return FreeForRequest(
        usable=int(free.inactive[usable].sum()),
        largest=int(largest.max(initial=0)),
        releasable=int(free.releasable.sum()),
        walled=int(free.inactive[foreign_pool].sum()),
        stranded=int(free.stranded[usable].sum()),
        other_streams=int(free.inactive[same_pool & ~same_stream].sum()),
        other_class=int(free.inactive[same_pool & same_stream & ~same_class].sum()),
        pending=int(blocks.size[blocks.state == BlockState.ACTIVE_PENDING_FREE].sum()),
        walled_piece=max(
            int(free.inactive[foreign_pool & same_class].max(initial=0)),
            int(_free_without_walls(layout, config).releasable[foreign_pool].sum()) + room,
        ),
        other_streams_piece=int(free.inactive[elsewhere].max(initial=0)),
    )


def _free_without_walls(layout: Layout, config: AllocatorConfig) -> FreeBytes:
    """The free bytes as if every segment belonged to the default pool."""
    segments = replace(layout.segments, pool=np.zeros_like(layout.segments.pool))
    return free_bytes(Layout(segments, layout.blocks), config)


def _can_grow(layout: Layout) -> BoolArray:
    """Which inactive blocks end a run of mapped pages, so that more pages could be mapped behind them."""
    segments, blocks = layout.segments, layout.blocks
    last = np.zeros(len(blocks), np.bool_)
    ends = segments.first_block[1:] - 1
    last[ends[ends >= 0]] = True
    result: BoolArray = last & segments.is_expandable[blocks.segment] & (blocks.state == BlockState.INACTIVE)
    return result
