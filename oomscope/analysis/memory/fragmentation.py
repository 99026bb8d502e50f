"""Free bytes, and what keeps them from being used or released.

Inactive bytes are *releasable* (wholly free segments of the default pool, whole free pages of its expandable
segments), *walled* (inside a private pool), or *stranded* (beside a live block that keeps them).
"""

from __future__ import annotations

import numpy as np

from oomscope.allocator import AllocatorConfig, round_sizes
from oomscope.allocator.rounding import page_size
from oomscope.analysis.memory.records import Fragmentation, PoolUse
from oomscope.frozen import frozen
from oomscope.model import BlockState, BoolArray, IntArray, Layout, PoolId


@frozen(eq=False)
class FreeBytes:
    """Each inactive block's bytes by what becomes of them; int64[blocks], 0 for blocks that are not inactive."""

    inactive: IntArray
    releasable: IntArray
    walled: IntArray
    stranded: IntArray


def free_bytes(layout: Layout, config: AllocatorConfig) -> FreeBytes:
    """Divide the inactive bytes of `layout`."""
    segments, blocks = layout.segments, layout.blocks
    inactive = np.where(blocks.state == BlockState.INACTIVE, blocks.size, 0)
    of = blocks.segment
    private = segments.pool[of] != 0
    whole = np.zeros(len(segments), np.int64)
    np.add.at(whole, of, blocks.size - inactive)
    is_free_segment = (whole == 0)[of]
    page = np.where(segments.is_large[of], page_size(False, config), page_size(True, config))
    # Runs of mapped pages begin on a page, so pages count from there.
    start = blocks.address - segments.address[of]
    first_page, last_page = -(-start // page), (start + inactive) // page
    pages = np.maximum(last_page - first_page, 0) * page
    releasable = np.where(segments.is_expandable[of], np.where(inactive > 0, pages, 0), inactive * is_free_segment)
    releasable = np.where(private, 0, releasable)
    walled = np.where(private, inactive, 0)
    return FreeBytes(inactive, releasable, walled, inactive - releasable - walled)


def fragmentation(layout: Layout, config: AllocatorConfig, pools: tuple[PoolId, ...]) -> Fragmentation:
    """The free bytes of `layout`, in all and for each kind of free list."""
    blocks = layout.blocks
    free = free_bytes(layout, config)
    active = blocks.is_active
    requested = blocks.requested_size[active]
    known = bool((requested >= 0).all())
    rounded = int(round_sizes(np.maximum(requested, 0), config).sum())
    return Fragmentation(
        inactive=int(free.inactive.sum()),
        largest_inactive=int(free.inactive.max(initial=0)),
        rounding=rounded - int(requested.sum()) if known else None,
        unsplit=int(blocks.size[active].sum()) - rounded if known else None,
        releasable=int(free.releasable.sum()),
        walled=int(free.walled.sum()),
        stranded=int(free.stranded.sum()),
        holes=int(np.count_nonzero(free.inactive)),
        by_pool=_by_pool(layout, free, pools),
    )


def _by_pool(layout: Layout, free: FreeBytes, pools: tuple[PoolId, ...]) -> tuple[PoolUse, ...]:
    segments, blocks = layout.segments, layout.blocks
    kinds: dict[tuple[int, int, bool, bool], list[int]] = {}
    columns = (segments.pool, segments.stream, segments.is_large, segments.is_expandable)
    for row, kind in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        kinds.setdefault(kind, []).append(row)
    uses = []
    for (pool, stream, large, expandable), rows in kinds.items():
        inside: BoolArray = np.isin(blocks.segment, rows)
        uses.append(
            PoolUse(
                pool=pools[pool],
                stream=stream,
                segment_type="large" if large else "small",
                is_expandable=expandable,
                segments=len(rows),
                reserved=int(segments.total_size[rows].sum()),
                active=int(blocks.size[inside & blocks.is_active].sum()),
                inactive=int(free.inactive[inside].sum()),
                largest_inactive=int(free.inactive[inside].max(initial=0)),
                releasable=int(free.releasable[inside].sum()),
                walled=int(free.walled[inside].sum()),
                stranded=int(free.stranded[inside].sum()),
            )
        )
    return tuple(sorted(uses, key=lambda use: -use.reserved))
