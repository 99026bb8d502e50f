"""Looking into an allocator: every block of every segment, and what must hold of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from oomscope.allocator.block import ADDRESS_BITS, Block, BlockPool, StreamPool
from oomscope.allocator.device import DeviceCachingAllocator
from oomscope.model import Action


def homes(allocator: DeviceCachingAllocator) -> list[StreamPool]:
    """The free blocks of every stream of every pool."""
    pools: Iterable[BlockPool] = allocator.pools.values()
    return [home for pool in pools for home in pool.streams.values()]


def segments(allocator: DeviceCachingAllocator, live: Iterable[Block]) -> list[list[Block]]:
    """The blocks of each segment, and of each expandable segment, in address order.

    Args:
        allocator: what is looked into.
        live: the blocks in use, which the allocator itself does not list.
    """
    found: dict[int, Block] = {}
    for home in homes(allocator):
        for block in (*home.blocks, *home.unmapped):
            found.setdefault(id(_head(block)), _head(block))
    for block in (*live, *allocator.pending.values()):
        found.setdefault(id(_head(block)), _head(block))
    return [_chain(head) for head in found.values()]


def _head(block: Block) -> Block:
    while block.prev is not None:
        block = block.prev
    return block


def _chain(head: Block) -> list[Block]:
    chain = [head]
    while (following := chain[-1].next) is not None:
        chain.append(following)
    return chain


def check(allocator: DeviceCachingAllocator, live: list[Block]) -> None:
    """Assert everything that holds of an allocator between two requests."""
    in_use = {id(block) for block in live}
    waiting = {id(block) for block in allocator.pending.values()}
    reserved = 0
    listed = 0
    for chain in segments(allocator, live):
        for block, following in itertools.pairwise(chain):
            assert following.prev is block, "neighbours are linked both ways"
            assert block.end == following.address, "blocks tile their segment"
            assert not (block.is_free and following.is_free), "free neighbours are one block"
            assert block.mapped or following.mapped, "unmapped neighbours are one block"
        for block in chain:
            assert block.size > 0
            assert block.size % 512 == 0
            assert block.is_free + (not block.mapped) + (id(block) in in_use) + (id(block) in waiting) == 1
            reserved += block.size if block.mapped else 0
            listed += block.is_free
        if chain[0].segment is None:
            assert all(block.mapped for block in chain)
        else:
            base, size = chain[0].segment.base, chain[0].segment.size
            assert (chain[0].address, chain[-1].end) == (base, base + size), "an expandable segment is tiled whole"
            page = chain[0].segment.page
            for block in chain:
                if not block.mapped:
                    assert (block.address - base) % page == 0
                    assert block.size % page == 0
    assert reserved == allocator.reserved
    assert sum(block.size for block in live) == allocator.allocated
    assert listed == sum(len(home.blocks) for home in homes(allocator))
    for home in homes(allocator):
        assert home.keys == sorted(home.keys)
        assert home.keys == [block.size << ADDRESS_BITS | block.address for block in home.blocks]
        assert home.unmapped == sorted(home.unmapped, key=lambda block: block.address)
    assert allocator.reserved == _reserved_by_events(allocator)
    assert allocator.peak_reserved >= allocator.reserved >= allocator.allocated
    assert allocator.reserved <= allocator.capacity
    # The cap is compared with the request; an expandable segment then maps whole pages.
    excess = allocator.config.large_segment_size if allocator.config.expandable_segments else 0
    assert allocator.reserved <= allocator.allowed_memory_maximum + excess


def _reserved_by_events(allocator: DeviceCachingAllocator) -> int:
    sign = {Action.SEGMENT_ALLOC: 1, Action.SEGMENT_MAP: 1, Action.SEGMENT_FREE: -1, Action.SEGMENT_UNMAP: -1}
    return sum(sign[action] * size for action, _, size in allocator.segment_events)
