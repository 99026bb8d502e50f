"""Beginning in the middle: an allocator that already holds segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from oomscope.allocator.block import Block, ExpandableSegment, StreamPool
from oomscope.allocator.program import InitialLayout
from oomscope.allocator.rounding import page_size
from oomscope.model import BlockState

if TYPE_CHECKING:
    from oomscope.allocator.device import DeviceCachingAllocator


class BlocksOfRequests(Protocol):
    """Where the block of each request is kept."""

    def __setitem__(self, request: int, block: Block, /) -> None: ...


def restore(allocator: DeviceCachingAllocator, initial: InitialLayout, blocks: BlocksOfRequests) -> None:
    """Put segments and blocks in place as if they had been made by requests.

    Args:
        allocator: still empty.
        initial: what to put there.
        blocks: by number of request; filled for the blocks in use.
    """
    segments = initial.layout.segments
    tails: dict[StreamPool, Block] = {}
    for row in range(len(segments)):
        home = allocator.get_pool(not segments.is_large[row], int(segments.stream[row]), int(segments.pool[row]))
        members = _blocks_of(allocator, initial, row, home, blocks)
        if not segments.is_expandable[row]:
            allocator.addresses.adopt(int(segments.address[row]), int(segments.total_size[row]))
        else:
            _append_run(allocator, members, int(initial.base[row]), tails)
        allocator.reserved += int(segments.total_size[row])
    for tail in tails.values():
        _append_unmapped(tail, _end_of(tail))
    allocator.peak_reserved = allocator.reserved
    allocator.peak_allocated = allocator.allocated


def _blocks_of(
    allocator: DeviceCachingAllocator,
    initial: InitialLayout,
    row: int,
    home: StreamPool,
    blocks: BlocksOfRequests,
) -> list[Block]:
    """The linked blocks of one segment."""
    table = initial.layout.blocks
    first, last = (int(at) for at in initial.layout.segments.first_block[row : row + 2])
    members: list[Block] = []
    for at in range(first, last):
        block = home.new_block(int(table.address[at]), int(table.size[at]))
        block.splice(members[-1] if members else None, None)
        members.append(block)
        state, number = table.state[at], int(initial.number[at])
        if state == BlockState.INACTIVE:
            home.insert(block)
        elif state == BlockState.ACTIVE_PENDING_FREE:
            allocator.pending[number] = block
        else:
            allocator.allocated += block.size
            blocks[number] = block
    return members


def _append_run(
    allocator: DeviceCachingAllocator, members: list[Block], base: int, tails: dict[StreamPool, Block]
) -> None:
    """Join a run of mapped pages to the expandable segment of its stream.

    A snapshot does not say where an expandable segment begins and ends. All runs of one stream and pool are taken for
    one segment, from the lowest address known, as long as they lie within the span of one.
    """
    home, end = members[0].home, members[-1].end
    tail = tails.get(home)
    if tail is not None and end > _end_of(tail):
        _append_unmapped(tail, _end_of(tail))
        tail = None
    if tail is None:
        page = page_size(home.pool.is_small, allocator.config)
        span = -(-allocator.limit.address_space // page) * page
        base = base if end <= base + span else members[0].address
        segment = ExpandableSegment(base, span, page)
        allocator.expandable_segments[home] = allocator.expandable_segments.get(home, 0) + 1
        tail = home.new_block(base, 0, segment)
        first = _append_unmapped(tail, members[0].address)
        if first is not tail:
            first.prev = None
            members[0].splice(first, members[0].next)
    else:
        segment = _segment_of(tail)
        members[0].splice(_append_unmapped(tail, members[0].address), members[0].next)
    for block in members:
        block.segment = segment
    tails[home] = members[-1]


def _end_of(block: Block) -> int:
    """Where the expandable segment of a block ends."""
    return _segment_of(block).base + _segment_of(block).size


def _append_unmapped(tail: Block, end: int) -> Block:
    """Fill the addresses from `tail` to `end`; the block that then comes last."""
    if tail.end >= end:
        return tail
    gap = tail.home.new_block(tail.end, end - tail.end, tail.segment)
    gap.splice(tail, None)
    tail.home.insert_unmapped(gap)
    return gap


def _segment_of(block: Block) -> ExpandableSegment:
    assert block.segment is not None
    return block.segment
