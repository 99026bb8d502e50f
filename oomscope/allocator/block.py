"""Blocks, and the pools that keep the free ones (struct Block, struct BlockPool of CUDACachingAllocator.cpp)."""

from __future__ import annotations

from bisect import bisect_left

ADDRESS_BITS = 52
"""Addresses lie below 2**52, so that size and address make one sortable integer."""
ADDRESS_SPACE = 1 << ADDRESS_BITS


class Block:
    """A piece of a segment.

    Blocks of one segment are linked in address order through `prev` and `next`.

    Attributes:
        address: where it starts.
        size: bytes.
        home: the free blocks that it returns to: those of its pool and stream.
        is_free: whether it is mapped and stands in its pool. A block that is neither free nor unmapped is in use, or
            waits for other streams (``allocated || event_count > 0``).
        mapped: False for the part of an expandable segment that has no memory behind it.
        segment: the expandable segment it belongs to, None for a block from cudaMalloc.
        key: where it stands among the free blocks; meaningless while it is not free.
        gc_count_base: calls of get_free_block that its pool had seen when the block was put into it.
    """

    __slots__ = ("address", "gc_count_base", "home", "is_free", "key", "mapped", "next", "prev", "segment", "size")

    def __init__(
        self,
        address: int,
        size: int,
        home: StreamPool,
        segment: ExpandableSegment | None = None,
        prev: Block | None = None,
        next: Block | None = None,  # noqa: A002 - its name in torch
    ) -> None:
        self.address = address
        self.size = size
        self.home = home
        self.segment = segment
        self.prev = prev
        self.next = next
        self.is_free = False
        self.mapped = True
        self.key = 0
        self.gc_count_base = 0

    @property
    def is_split(self) -> bool:
        """Whether it is only a part of its segment."""
        return self.prev is not None or self.next is not None

    @property
    def is_allocatable(self) -> bool:
        """Whether an allocation may take its address range: free or unmapped."""
        return self.is_free or not self.mapped

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size

    def splice(self, before: Block | None, after: Block | None) -> None:
        """Link this block between two neighbours."""
        self.prev, self.next = before, after
        if before is not None:
            before.next = self
        if after is not None:
            after.prev = self


class ExpandableSegment:
    """A range of addresses into which pages are mapped as they are needed (struct ExpandableSegment).

    Attributes:
        base: where the range starts.
        size: bytes of the range, a multiple of `page`.
        page: bytes that are mapped and unmapped as one.
    """

    __slots__ = ("base", "page", "size")

    def __init__(self, base: int, size: int, page: int) -> None:
        self.base = base
        self.size = size
        self.page = page


class StreamPool:
    """The free blocks of one pool that belong to one stream.

    torch keeps one set for all streams, ordered by (stream, size, address), and never looks beyond the stream of a
    request. Here each stream has its own.

    Attributes:
        pool: the pool this is a part of.
        stream: the raw stream.
        keys: of the free blocks, ascending: the size above, the address below.
        blocks: the free blocks, in the order of their keys.
        unmapped: unmapped blocks of expandable segments, in address order (BlockPool::unmapped).
        split_limit: requests below it may split a block (max_split_size, where it counts for this pool).
        keep: a remainder of so many bytes stays with the block that is handed out.
    """

    __slots__ = ("blocks", "keep", "keys", "pool", "split_limit", "stream", "unmapped")

    def __init__(self, pool: BlockPool, stream: int, split_limit: int, keep: int) -> None:
        self.pool = pool
        self.stream = stream
        self.split_limit = split_limit
        self.keep = keep
        self.keys: list[int] = []
        self.blocks: list[Block] = []
        self.unmapped: list[Block] = []

    def new_block(self, address: int, size: int, segment: ExpandableSegment | None = None) -> Block:
        """A block that stands nowhere yet."""
        return Block(address, size, self, segment)

    def insert(self, block: Block) -> None:
        """Put a free block into the pool (BlockPool::insert_into_blocks)."""
        block.is_free = True
        block.gc_count_base = self.pool.get_free_blocks_call_count
        key = block.key = block.size << ADDRESS_BITS | block.address
        position = bisect_left(self.keys, key)
        self.keys.insert(position, key)
        self.blocks.insert(position, block)

    def erase(self, block: Block) -> None:
        """Take a block out of the pool."""
        block.is_free = False
        position = bisect_left(self.keys, block.key)
        del self.keys[position]
        del self.blocks[position]

    def insert_unmapped(self, block: Block) -> None:
        """Keep an unmapped block, in address order."""
        block.is_free = block.mapped = False
        at = len(self.unmapped)
        while at and self.unmapped[at - 1].address > block.address:
            at -= 1
        self.unmapped.insert(at, block)


class BlockPool:
    """The small or the large pool, of the default memory pool or of a private one.

    Attributes:
        is_small: whether it serves (rounded) requests up to 1 MiB.
        owner: the number of the private pool in the snapshot's `pools`; 0 for the default pool.
        is_capturing: whether requests for it come while a CUDA graph is captured.
        streams: its free blocks by stream.
        get_free_blocks_call_count: how often a block was looked for, the clock of garbage collection.
    """

    __slots__ = ("get_free_blocks_call_count", "is_capturing", "is_small", "owner", "streams")

    def __init__(self, is_small: bool, owner: int, is_capturing: bool = False) -> None:
        self.is_small = is_small
        self.is_capturing = is_capturing
        self.owner = owner
        self.streams: dict[int, StreamPool] = {}
        self.get_free_blocks_call_count = 0

    def blocks(self) -> list[Block]:
        """The free blocks of all streams, in torch's order: by stream, size, address."""
        return [block for stream in sorted(self.streams) for block in self.streams[stream].blocks]

    def whole_segments(self) -> list[Block]:
        """The free blocks that are a whole segment from cudaMalloc each, in that order."""
        return [block for block in self.blocks() if block.segment is None and not block.is_split]

    def expandable_blocks(self, least: int) -> list[Block]:
        """The free blocks of expandable segments of at least `least` bytes, in that order."""
        return [block for block in self.blocks() if block.segment is not None and block.size >= least]
