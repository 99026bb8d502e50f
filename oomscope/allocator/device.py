"""The allocator of one device (class DeviceCachingAllocator of c10/cuda/CUDACachingAllocator.cpp).

Every method bears the name of the C++ function it models; what belongs to expandable segments is in `expandable`,
what gives memory back to the device in `release`. The rules are those of torch 2.1 to 2.13; `torch_releases`
says what came when.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

from oomscope.allocator.addresses import Addresses, Ascending
from oomscope.allocator.block import ADDRESS_BITS, Block, BlockPool, StreamPool
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.expandable import try_allocate_expandable_block
from oomscope.allocator.limits import NO_LIMIT, Limit
from oomscope.allocator.release import (
    garbage_collect_cached_blocks,
    release_available_cached_blocks,
    release_cached_blocks,
)
from oomscope.allocator.rounding import MIN_BLOCK_SIZE, ROUND_LARGE, SMALL_SIZE, allocation_size
from oomscope.model import Action

UNBOUNDED = 1 << 62
"""Stands for "no bound" where bytes are compared."""


class DeviceCachingAllocator:
    """Serves requests as torch's allocator does, on a device that exists only as numbers.

    Attributes:
        config: the settings.
        reserved: bytes obtained from the device (total_allocated_memory); `peak_reserved` the most so far.
        allocated: bytes of blocks in use; `peak_allocated` the most so far.
        num_alloc_retries: how often all cached blocks were released to serve a request.
        num_device_alloc: segments allocated and ranges mapped.
        most_allowed, least_refused: the largest sum of reserved bytes and a request that the cap allowed, and the
            least that it refused. Under any cap from the one to below the other, everything would be the same.
        missing: bytes that the limit lacked for what was last refused.
        segment_events: (action, address, size) of each segment_alloc, segment_free, segment_map and segment_unmap.
        pending: blocks that were freed while other streams may still use them, by their number.
        expandable_segments: how many were ever made for each stream of a pool.
    """

    def __init__(
        self,
        config: AllocatorConfig,
        limit: Limit = NO_LIMIT,
        addresses: Addresses | None = None,
        capturing: Collection[int] = (),
    ) -> None:
        """Begin with nothing reserved.

        Args:
            config: the settings.
            limit: what may be reserved.
            addresses: where new segments lie; ascending if None.
            capturing: the private pools whose requests come while a CUDA graph is captured, when nothing can be
                released.
        """
        self.config = config
        self.limit = limit
        self.addresses = Ascending() if addresses is None else addresses
        self.allowed_memory_maximum = UNBOUNDED if limit.cap is None else limit.cap
        self.capacity = UNBOUNDED if limit.capacity is None else limit.capacity
        self.max_split_size = UNBOUNDED if config.max_split_size is None else config.max_split_size
        self.collects_garbage = limit.cap is not None and config.garbage_collection_threshold > 0.0
        # Whether the first block that is large enough may not be the one to take, and must be looked at.
        self.judges_blocks = config.max_split_size is not None or self.collects_garbage
        aligns = config.base_alignment > 0 and config.expandable_segments
        self.aligned_from = ROUND_LARGE if aligns else UNBOUNDED
        self.pools: dict[tuple[int, bool], BlockPool] = {}
        self.capturing = capturing
        self.freeable_pools: list[int] = []
        # Objects of merged blocks: to fill one again costs less than to make one.
        self.spare: list[Block] = []
        self.pending: dict[int, Block] = {}
        self.expandable_segments: dict[StreamPool, int] = {}
        self.segment_events: list[tuple[Action, int, int]] = []
        self.reserved = self.peak_reserved = 0
        self.allocated = self.peak_allocated = 0
        self.num_alloc_retries = self.num_device_alloc = 0
        self.most_allowed, self.least_refused = 0, UNBOUNDED
        self.missing = 0

    def get_pool(self, is_small: bool, stream: int, owner: int = 0) -> StreamPool:
        """The free blocks that serve small or large requests on a stream, of the default or a private pool."""
        pool = self.pools.get((owner, is_small))
        if pool is None:
            pool = self.pools[owner, is_small] = self._new_pool(is_small, owner)
        home = pool.streams.get(stream)
        if home is None:
            home = pool.streams[stream] = self._new_home(pool, stream)
        return home

    def _new_pool(self, is_small: bool, owner: int) -> BlockPool:
        return BlockPool(is_small, owner, owner in self.capturing)

    def _new_home(self, pool: BlockPool, stream: int) -> StreamPool:
        return StreamPool(pool, stream, *self._splitting(pool.is_small))

    def _splitting(self, is_small: bool) -> tuple[int, int]:
        """What `rounding.should_split` compares with, taken out of the path of every request."""
        if is_small or self.config.expandable_segments:
            return UNBOUNDED, MIN_BLOCK_SIZE - 1
        return self.max_split_size, SMALL_SIZE

    def malloc(self, size: int, home: StreamPool, least_key: int | None = None) -> Block | None:
        """Serve a request; None when the device is out of memory.

        `malloc`, `get_free_block`, `should_split` and `alloc_found_block` in one, for nearly all of a replay's time
        is spent here and in `free_block`.

        Args:
            size: bytes, already rounded.
            home: where to look for a free block, and where the rest of one goes.
            least_key: the least that the key of a block of this size can be, where it is known.
        """
        keys = home.keys
        position = bisect_left(keys, size << ADDRESS_BITS if least_key is None else least_key)
        if self.judges_blocks or (home.unmapped and position < len(keys)):
            position = self._choose(size, home, position)
        if position < len(keys):
            del keys[position]
            block = home.blocks.pop(position)
        else:
            obtained = self.malloc_from_device(size, home)
            if obtained is None:
                return None
            block = obtained
        if size >= self.aligned_from:
            self._align(block, size)
        remaining = block.size - size
        if remaining > home.keep and size < home.split_limit:
            # The head is handed out; the tail goes back to the pool as the block that it was.
            address, before = block.address, block.prev
            if self.spare:
                found = self.spare.pop()
                found.address, found.size, found.home, found.segment = address, size, home, block.segment
                found.prev, found.next = before, block
                found.is_free, found.mapped = False, True
            else:
                found = Block(address, size, home, block.segment, before, block)
            if before is not None:
                before.next = found
            block.prev = found
            block.address = address = address + size
            block.size = remaining
            block.is_free = True
            if self.collects_garbage:
                block.gc_count_base = home.pool.get_free_blocks_call_count
            key = block.key = remaining << ADDRESS_BITS | address
            position = bisect_left(keys, key)
            keys.insert(position, key)
            home.blocks.insert(position, block)
            block = found
        else:
            size = block.size
            block.is_free = False
        self.allocated = allocated = self.allocated + size
        if allocated > self.peak_allocated:
            self.peak_allocated = allocated
        return block

    def _align(self, block: Block, size: int) -> None:
        """Let a block that is about to be handed out begin at an aligned address, if it is large enough for that.

        What lies before that address goes back to the pool (malloc of torch_npu's NPUCachingAllocator.cpp).
        """
        offset = -block.address % self.config.base_alignment
        if not offset or offset + size > block.size:
            return
        head = Block(block.address, offset, block.home, block.segment)
        head.splice(block.prev, block)
        block.address, block.size = block.address + offset, block.size - offset
        block.home.insert(head)

    def _choose(self, size: int, home: StreamPool, position: int) -> int:
        """Which block get_free_block takes, when it is not simply the smallest that is large enough.

        Only one candidate is judged: when it is refused, larger ones are not looked at and the answer is behind
        the last block.
        """
        home.pool.get_free_blocks_call_count += 1
        blocks = home.blocks
        end = len(blocks)
        if position == end:
            return end
        block = blocks[position]
        behind = block.next
        if behind is not None and not behind.mapped:
            # Best fit is by the size to which a block can grow, so blocks of larger size may be the better fit.
            grown = block.size + behind.size
            while block.segment is not None and position + 1 < end:
                following = blocks[position + 1]
                if following.size >= grown or (following_grown := _expandable_size(following)) >= grown:
                    break
                block, grown, position = following, following_grown, position + 1
        if size < self.max_split_size <= block.size:
            return end
        if size >= self.max_split_size and block.size >= size + self.config.max_non_split_rounding_size:
            return end
        return position

    def malloc_from_device(self, size: int, home: StreamPool) -> Block | None:
        """What malloc does when no free block serves: allocate, release what is cached, allocate again."""
        if self.collects_garbage:
            garbage_collect_cached_blocks(self)
        block = self.alloc_block(size, home)
        if block is None and release_available_cached_blocks(self, size, home):
            block = self.alloc_block(size, home)
        if block is None and not home.pool.is_capturing:
            release_cached_blocks(self)
            self.num_alloc_retries += 1
            block = self.alloc_block(size, home)
        return block

    def alloc_block(self, size: int, home: StreamPool) -> Block | None:
        """A new segment, or more pages, for a request of `size` bytes; None where the limit forbids it."""
        alloc_size = allocation_size(size, self.config)
        # The whole request counts, also where expandable segments need but a page more.
        demand = self.reserved + alloc_size
        if demand > self.allowed_memory_maximum:
            self.least_refused = min(self.least_refused, demand)
            # Pages are compared with the capacity one by one, segments as the whole request.
            within = self.allowed_memory_maximum
            self.missing = demand - (within if self.config.expandable_segments else min(within, self.capacity))
            return None
        self.most_allowed = max(self.most_allowed, demand)
        if self.config.expandable_segments:
            return try_allocate_expandable_block(self, size, home)
        if demand > self.capacity:
            self.missing = demand - self.capacity
            return None
        block = home.new_block(self.addresses.segment(alloc_size), alloc_size)
        self.obtained(Action.SEGMENT_ALLOC, block.address, alloc_size)
        return block

    def obtained(self, action: Action, address: int, size: int) -> None:
        """Note memory that came from the device."""
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        self.num_device_alloc += 1
        self.segment_events.append((action, address, size))

    def returned(self, action: Action, address: int, size: int) -> None:
        """Note memory that went back to the device."""
        self.reserved -= size
        if action is Action.SEGMENT_FREE:
            self.addresses.freed(address, size)
        self.segment_events.append((action, address, size))

    def free_requested(self, number: int, block: Block) -> None:
        """Take back a block that other streams may still use; it is free only after `free_completed`."""
        self.allocated -= block.size
        self.pending[number] = block

    def free_completed(self, number: int) -> None:
        """Other streams are done with a block, unless a release of cached blocks has already waited for them."""
        block = self.pending.pop(number, None)
        if block is not None:
            self.free_block(block)

    def free_block(self, block: Block) -> None:
        """Put a block back into its pool, merged with its free neighbours (free_block, try_merge_blocks)."""
        home = block.home
        keys, blocks = home.keys, home.blocks
        address, size = block.address, block.size
        neighbour = block.prev
        if neighbour is not None and neighbour.is_free:
            address = neighbour.address
            position = bisect_left(keys, neighbour.key)
            del keys[position]
            del blocks[position]
            size += neighbour.size
            self.spare.append(neighbour)
            block.prev = neighbour = neighbour.prev
            if neighbour is not None:
                neighbour.next = block
        neighbour = block.next
        if neighbour is not None and neighbour.is_free:
            position = bisect_left(keys, neighbour.key)
            del keys[position]
            del blocks[position]
            size += neighbour.size
            self.spare.append(neighbour)
            block.next = neighbour = neighbour.next
            if neighbour is not None:
                neighbour.prev = block
        block.address, block.size = address, size
        block.is_free = True
        if self.collects_garbage:
            block.gc_count_base = home.pool.get_free_blocks_call_count
        key = block.key = size << ADDRESS_BITS | address
        position = bisect_left(keys, key)
        keys.insert(position, key)
        blocks.insert(position, block)

    def empty_cache(self) -> None:
        """Give back what is not in use (emptyCache)."""
        release_cached_blocks(self)


def _expandable_size(block: Block) -> int:
    following = block.next
    return block.size + (following.size if following is not None and not following.mapped else 0)
