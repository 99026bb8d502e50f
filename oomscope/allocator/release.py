"""How memory goes back to the device: before a retry, by `empty_cache`, and by garbage collection.

Source: garbage_collect_cached_blocks, release_available_cached_blocks, release_cached_blocks, release_blocks and
release_block of c10/cuda/CUDACachingAllocator.cpp.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from oomscope.allocator.block import ADDRESS_BITS, Block, BlockPool, StreamPool
from oomscope.allocator.expandable import unmap_block
from oomscope.allocator.rounding import page_size
from oomscope.model import Action

if TYPE_CHECKING:
    from oomscope.allocator.device import DeviceCachingAllocator


def garbage_collect_cached_blocks(allocator: DeviceCachingAllocator) -> None:
    """Free cached segments that were not used for long, down to the threshold's share of the cap.

    Only whole segments of the default large pool are collected. Those of more than average age go first, and all of
    them go, even beyond what was needed.
    """
    threshold = int(allocator.config.garbage_collection_threshold * allocator.allowed_memory_maximum)
    target = allocator.reserved - threshold
    pool = allocator.pools.get((0, False))
    if target <= 0 or pool is None:
        return
    calls = pool.get_free_blocks_call_count
    freeable = [block for block in pool.blocks() if not block.is_split]
    total_age = sum(calls - block.gc_count_base for block in freeable)
    count = len(freeable)
    reclaimed, freed = 0, True
    while reclaimed < target and freed and count > 0:
        age_threshold = total_age / count
        freed, kept = False, []
        for block in freeable:
            age = calls - block.gc_count_base
            if block.segment is not None or age < age_threshold:
                kept.append(block)
                continue
            freed = True
            reclaimed += block.size
            total_age -= age
            count -= 1
            release_block(allocator, block)
        freeable = kept


def release_available_cached_blocks(allocator: DeviceCachingAllocator, size: int, home: StreamPool) -> bool:
    """Free just enough of the blocks above max_split_size to serve a request of `size` bytes; whether it was enough."""
    if allocator.config.max_split_size is None:
        return False
    wanted = max(size, allocator.max_split_size)
    blocks = list(home.blocks)
    position = bisect_left(home.keys, wanted << ADDRESS_BITS)
    if position < len(blocks) and blocks[position].segment is None:
        release_block(allocator, blocks[position])
        return True
    # No single block is large enough: several, the largest first. They stay freed even if they do not suffice.
    released = 0
    for block in reversed(blocks[:position]):
        if released >= wanted or block.size < allocator.max_split_size:
            break
        if block.segment is None:
            released += block.size
            release_block(allocator, block)
    return released >= wanted


def release_cached_blocks(allocator: DeviceCachingAllocator) -> None:
    """Free every segment that is not in use, of all streams, after waiting for whatever is pending."""
    # synchronize_and_free_events
    for block in allocator.pending.values():
        allocator.free_block(block)
    allocator.pending.clear()
    for is_small in (False, True):
        _release_blocks(allocator, allocator.pools.get((0, is_small)))
    for owner in allocator.freeable_pools:
        for is_small in (True, False):
            _release_blocks(allocator, allocator.pools.get((owner, is_small)))


def _release_blocks(allocator: DeviceCachingAllocator, pool: BlockPool | None) -> None:
    if pool is None:
        return
    expandable = pool.expandable_blocks(page_size(pool.is_small, allocator.config))
    for block in pool.whole_segments():
        release_block(allocator, block)
    for block in expandable:
        unmap_block(allocator, block)


def release_block(allocator: DeviceCachingAllocator, block: Block) -> None:
    """Free a whole segment."""
    block.home.erase(block)
    allocator.returned(Action.SEGMENT_FREE, block.address, block.size)
