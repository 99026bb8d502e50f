"""Expandable segments: one range of addresses for each stream of a pool, filled with pages as they are needed.

Source: find_expandable_block, map_block, try_allocate_expandable_block, unmap_block and release_expandable_segment
of c10/cuda/CUDACachingAllocator.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomscope.allocator.block import Block, ExpandableSegment, StreamPool
from oomscope.allocator.rounding import page_size
from oomscope.model import Action

if TYPE_CHECKING:
    from oomscope.allocator.device import DeviceCachingAllocator


def try_allocate_expandable_block(allocator: DeviceCachingAllocator, size: int, home: StreamPool) -> Block | None:
    """A block of at least `size` bytes, made by mapping what is missing; None where the device has no page left."""
    candidate = find_expandable_block(allocator, size, home)
    if not candidate.mapped and not map_block(allocator, candidate, min(candidate.size, size)):
        return None
    while candidate.size < size:
        unmapped = candidate.next
        assert unmapped is not None, "find_expandable_block promised enough addresses"
        # What was mapped before a failure stays, as a free block.
        if not map_block(allocator, unmapped, min(size - candidate.size, unmapped.size)):
            return None
        candidate = unmapped
    home.erase(candidate)
    return candidate


def find_expandable_block(allocator: DeviceCachingAllocator, size: int, home: StreamPool) -> Block:
    """The first block of the lowest run of free and unmapped blocks with `size` bytes of addresses.

    It is unmapped, or free with an unmapped one behind it. A new segment where there is no such run.
    """
    for unmapped in home.unmapped:
        before = unmapped.prev
        first = before if before is not None and before.is_allocatable else unmapped
        if _has_available_address_space(first, size):
            return first
    return _new_segment(allocator, size, home)


def _has_available_address_space(block: Block | None, size: int) -> bool:
    found = 0
    while found < size and block is not None and block.is_allocatable:
        found += block.size
        block = block.next
    return found >= size


def _new_segment(allocator: DeviceCachingAllocator, size: int, home: StreamPool) -> Block:
    page = page_size(home.pool.is_small, allocator.config)
    # 1 1/8 of the device, so that pages can be unmapped early in the range and put at its end.
    span = max(allocator.limit.address_space, size)
    span = -(-span // page) * page
    segment = ExpandableSegment(allocator.addresses.reserve(span), span, page)
    allocator.expandable_segments[home] = allocator.expandable_segments.get(home, 0) + 1
    block = home.new_block(segment.base, span, segment)
    home.insert_unmapped(block)
    return block


def map_block(allocator: DeviceCachingAllocator, block: Block, size: int) -> bool:
    """Map the first `size` bytes of an unmapped block, in whole pages; False where the device has not so many left."""
    segment = block.segment
    assert segment is not None
    mapped = -(-size // segment.page) * segment.page
    if allocator.reserved + mapped > allocator.capacity:
        allocator.missing = allocator.reserved + mapped - allocator.capacity
        return False
    home = block.home
    home.unmapped.remove(block)
    address = block.address
    if mapped < block.size:
        remaining = home.new_block(address + mapped, block.size - mapped, segment)
        remaining.splice(block, block.next)
        home.insert_unmapped(remaining)
        block.size = mapped
    block.mapped = True
    _try_merge_blocks(block, block.prev)
    _try_merge_blocks(block, block.next)
    home.insert(block)
    allocator.addresses.mapped(mapped)
    allocator.obtained(Action.SEGMENT_MAP, address, mapped)
    return True


def unmap_block(allocator: DeviceCachingAllocator, block: Block) -> None:
    """Unmap the pages that lie wholly inside a free block; what is left of it at either end stays free."""
    segment, home = block.segment, block.home
    assert segment is not None
    begin = segment.base + -(-(block.address - segment.base) // segment.page) * segment.page
    end = segment.base + (block.end - segment.base) // segment.page * segment.page
    if end <= begin:
        return
    home.erase(block)
    if begin > block.address:
        before = home.new_block(block.address, begin - block.address, segment)
        before.splice(block.prev, block)
        home.insert(before)
    if end < block.end:
        after = home.new_block(end, block.end - end, segment)
        after.splice(block, block.next)
        home.insert(after)
    block.address, block.size = begin, end - begin
    block.mapped = False
    _try_merge_blocks(block, block.prev)
    _try_merge_blocks(block, block.next)
    home.insert_unmapped(block)
    allocator.returned(Action.SEGMENT_UNMAP, begin, end - begin)
    if not block.is_split:
        _release_expandable_segment(allocator, block, segment)


def _release_expandable_segment(allocator: DeviceCachingAllocator, block: Block, segment: ExpandableSegment) -> None:
    block.home.unmapped.remove(block)
    allocator.addresses.release(segment.base, segment.size)


def _try_merge_blocks(block: Block, neighbour: Block | None) -> None:
    """Join `neighbour` to `block` where both are free, or both unmapped."""
    if neighbour is None or not neighbour.is_allocatable or neighbour.mapped != block.mapped:
        return
    if neighbour.mapped:
        neighbour.home.erase(neighbour)
    else:
        neighbour.home.unmapped.remove(neighbour)
    if block.prev is neighbour:
        block.address = neighbour.address
        block.splice(neighbour.prev, block.next)
    else:
        block.splice(block.prev, neighbour.next)
    block.size += neighbour.size
