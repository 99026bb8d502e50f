"""Lifetimes: one row for each allocation, from the request to the moment its bytes could be used again."""

from __future__ import annotations

import numpy as np

from oomscope.frozen import frozen
from oomscope.model import NO_STACK, Action, Blocks, BlockState, BoolArray, IntArray, Trace
from oomscope.model.arrays import StackArray
from oomscope.model.ordering import stable_order

BEFORE = -1
"""The number of the entry before the first: what was there when the recording began."""


@frozen(eq=False)
class Lifetimes:
    """Every allocation that the trace or the final blocks know of; one row an allocation.

    Entry `t` has happened when ``born <= t``; a block is allocated while ``born <= t < freed`` and active while
    ``born <= t < gone``. With `n` entries, `n` stands in `freed` and `gone` for "not by the end of the snapshot".

    Attributes:
        address: int64, start of the block.
        requested: int64, bytes asked for; -1 unknown (torch 1.13).
        born: int64, the entry that allocated it, `BEFORE` for what was there when the recording began.
        freed: int64, the entry that requested its free; `BEFORE` where that was before the recording.
        gone: int64, the entry that completed its free.
        stream: int64, the raw stream it was allocated on.
        stack: int32, where it was allocated.
        pool: int32, the pool that its entry names; -1 where it names none.
        block: int64, its row in the final blocks, -1 for what is gone.
    """

    address: IntArray
    requested: IntArray
    born: IntArray
    freed: IntArray
    gone: IntArray
    stream: IntArray
    stack: StackArray
    pool: StackArray
    block: IntArray

    def __len__(self) -> int:
        return len(self.address)

    def by_birth(self) -> IntArray:
        """The rows that were born within the recording, first to last: an entry allocates one block at most."""
        begun = np.flatnonzero(self.born > BEFORE)
        row = np.full(int(self.born.max(initial=BEFORE)) + 1, -1, np.int64)
        row[self.born[begun]] = begun
        return row[row >= 0]

    def allocated_at(self, entry: int) -> BoolArray:
        """Which rows are allocated once `entry` has happened."""
        return (self.born <= entry) & (entry < self.freed)

    def active_at(self, entry: int) -> BoolArray:
        """Which rows are allocated or pending free once `entry` has happened."""
        return (self.born <= entry) & (entry < self.gone)


@frozen(eq=False)
class Pairing:
    """Lifetimes with what did not fit together while they were made.

    Attributes:
        lifetimes: the table, ordered by address, then time; blocks that no entry mentions come last.
        missing: rows that the trace left live and that no final block has (they end with the trace).
        overlapping: how many allocations began where the trace had not ended the last one.
    """

    lifetimes: Lifetimes
    missing: IntArray
    overlapping: int


def pair(trace: Trace, blocks: Blocks, block_stream: IntArray) -> Pairing:
    """Match each allocation with its free and with its final block.

    Alloc and free entries sorted by address, then by order, put every allocation beside its own free, because an
    address holds one block at a time.

    Args:
        trace: the device's trace.
        blocks: the device's final blocks.
        block_stream: int64[blocks], the stream of each block's segment.
    """
    end = len(trace)
    entries = trace.entries(Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)
    entries = entries[stable_order(trace.address[entries])]
    action = trace.action[entries]
    first = _starts(trace.address[entries], action)
    rows, begins = len(first), entries[first]
    address = trace.address[begins]
    born, request, gone = _own_entries(entries, action, first)
    unrequested = (request < 0) & (gone >= 0)
    freed = _freed(born, request, gone, unrequested)

    followed = np.zeros(rows, np.bool_)
    followed[:-1] = address[1:] == address[:-1]
    begins_next = np.append(begins[1:], end)[:rows]
    open_ = gone < 0
    overlapping = int(np.count_nonzero(open_ & followed & (freed < 0)))
    # What lacks its end although the address was used again ended then at the latest.
    gone = np.where(open_ & followed, np.where(freed >= 0, freed, begins_next), gone)
    freed = np.where((freed < 0) & ~unrequested, np.where(gone >= 0, gone, end), freed)

    active = np.flatnonzero(blocks.is_active)
    block, missing = _held_at_the_end(np.flatnonzero(gone < 0), address, blocks.address, active)
    gone[gone < 0] = end
    # The segments are read last and are right: what they do not hold ended at the last entry at the latest.
    gone[missing] = end - 1
    freed[missing] = np.minimum(freed[missing], end - 1)
    traced = Lifetimes(
        address=address,
        requested=trace.size[begins],
        born=born,
        freed=freed,
        gone=gone,
        stream=trace.stream[begins],
        stack=_stacks(trace, begins, born, request),
        pool=trace.pool[begins],
        block=block,
    )
    return Pairing(_with_final_blocks(traced, blocks, block_stream, active, end), missing, overlapping)


def _own_entries(
    entries: IntArray, action: np.ndarray[tuple[int], np.dtype[np.uint8]], first: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The entries that allocate each lifetime, request its free and complete that; `BEFORE`, -1 and -1 for none.

    Of a lifetime's entries, three at most, a request is one of the first two and its completion the last.
    """
    last = np.append(first[1:], len(entries))[: len(first)] - 1
    second = np.minimum(first + 1, last)
    begins, started = entries[first], action[first]
    request = np.where(action[second] == Action.FREE_REQUESTED, entries[second], -1)
    return (
        np.where(started == Action.ALLOC, begins, BEFORE),
        np.where(started == Action.FREE_REQUESTED, begins, request),
        np.where(action[last] == Action.FREE_COMPLETED, entries[last], -1),
    )


def _freed(born: IntArray, request: IntArray, gone: IntArray, unrequested: BoolArray) -> IntArray:
    """The entry at which each free was requested.

    One that completes without a request was requested before the recording, unless requests are not recorded: then
    blocks from within it show that as well.
    """
    skipped = bool((unrequested & (born != BEFORE)).any())
    return np.where(unrequested & (skipped | (born != BEFORE)), gone, request)


def _held_at_the_end(unended: IntArray, address: IntArray, at: IntArray, active: IntArray) -> tuple[IntArray, IntArray]:
    """The final block of each lifetime, -1 where it ended; and those of the `unended` that no `active` block has.

    Args:
        unended: the rows that no entry ends.
        address: int64[lifetimes].
        at: int64[blocks], the address of each final block.
        active: the numbers of the blocks that are in use.
    """
    block = np.full(len(address), -1, np.int64)
    found = _find(address[unended], at[active])
    block[unended[found >= 0]] = active[found[found >= 0]]
    return block, unended[found < 0]


def _starts(address: IntArray, action: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> IntArray:
    """Where, in entries sorted by address and order, a new lifetime starts.

    Besides every alloc: the first entry at an address, whatever follows a completed free, and a second free request,
    for a trace may lack any kind of entry (`skip_actions`, torch 2.11+) and begin anywhere.
    """
    if not len(address):
        return np.zeros(0, np.int64)
    start = np.empty(len(address), np.bool_)
    start[0] = True
    before, now = action[:-1], action[1:]
    start[1:] = (
        (address[1:] != address[:-1])
        | (now == Action.ALLOC)
        | (before == Action.FREE_COMPLETED)
        | ((before == Action.FREE_REQUESTED) & (now == Action.FREE_REQUESTED))
    )
    return np.flatnonzero(start)


def _find(wanted: IntArray, ascending: IntArray) -> IntArray:
    """Positions of `wanted` values in `ascending` ones, -1 where absent."""
    if not len(ascending):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.where(ascending[at] == wanted, at, -1)


def _stacks(trace: Trace, begins: IntArray, born: IntArray, request: IntArray) -> StackArray:
    """Where each lifetime was allocated.

    Under ``context="alloc"`` torch gives a free the stack of its allocation; then the frees of blocks from before
    the recording tell where those were made. Under ``context="all"`` a free has a stack of its own, which does not.

    Args:
        trace: the device's trace.
        begins: int64[lifetimes], the first entry of each.
        born: int64[lifetimes], the entry that allocated each; `BEFORE` where none did.
        request: int64[lifetimes], the entry that requested its free; negative where none did.
    """
    stack = trace.stack[begins]
    both = np.flatnonzero((request >= 0) & (born != BEFORE))
    reuses = len(both) > 0 and bool(np.all(trace.stack[request[both]] == stack[both]))
    if not reuses:
        stack[born == BEFORE] = NO_STACK
    return stack


def _with_final_blocks(
    traced: Lifetimes, blocks: Blocks, block_stream: IntArray, active: IntArray, end: int
) -> Lifetimes:
    """`traced` with what only the final blocks know: exact requests, stacks, and blocks that no entry mentions."""
    matched = np.flatnonzero(traced.block >= 0)
    rows = traced.block[matched]
    traced.stack[matched] = np.where(traced.stack[matched] == NO_STACK, blocks.stack[rows], traced.stack[matched])
    # The segments are read a moment after the trace: a free in between shows in the block's state alone.
    pending = blocks.state[rows] == BlockState.ACTIVE_PENDING_FREE
    traced.freed[matched[pending & (traced.freed[matched] == end)]] = end - 1

    unseen = np.setdiff1d(active, rows, assume_unique=True)
    count = len(unseen)
    if not count:
        return traced
    pending = blocks.state[unseen] == BlockState.ACTIVE_PENDING_FREE
    none = np.full(count, -1, np.int32)
    return Lifetimes(
        address=np.concatenate([traced.address, blocks.address[unseen]]),
        requested=np.concatenate([traced.requested, blocks.requested_size[unseen]]),
        born=np.concatenate([traced.born, np.full(count, BEFORE, np.int64)]),
        freed=np.concatenate([traced.freed, np.where(pending, BEFORE, end)]),
        gone=np.concatenate([traced.gone, np.full(count, end, np.int64)]),
        stream=np.concatenate([traced.stream, block_stream[unseen]]),
        stack=np.concatenate([traced.stack, blocks.stack[unseen]]),
        pool=np.concatenate([traced.pool, none]),
        block=np.concatenate([traced.block, unseen]),
    )
