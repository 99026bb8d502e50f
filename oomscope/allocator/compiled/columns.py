"""Blocks and pools whose fields are columns, so that compiled code and the rules of the plain model share them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from oomscope.allocator.block import ADDRESS_BITS, Block, BlockPool, ExpandableSegment, StreamPool
from oomscope.allocator.compiled import core
from oomscope.allocator.compiled.core import State
from oomscope.model import IntArray

_ROWS, _ROOM = 4096, 512
_FRESH = [0, 0, -1, -1, 0, -1, 0, 0, 1]


class Store:
    """The state of one replay, and the objects that stand for its rows.

    Attributes:
        state: the columns; others after `make_room` and where a home or a pool is added.
        homes: by number.
        segments: the expandable ones, by number.
    """

    def __init__(self, requests: int, noted: int) -> None:
        """Begin with no block.

        Args:
            requests: how many there are.
            noted: how many addresses are to be noted.
        """
        self.state = State(
            block=np.zeros((_ROWS, len(_FRESH)), np.int64),
            spare=np.arange(_ROWS, dtype=np.int64)[::-1].copy(),
            home=np.zeros((0, 5), np.int64),
            order=np.zeros((0, _ROOM), np.int64),
            calls=np.zeros(0, np.int64),
            request=np.full((requests, 5), -1, np.int64),
            noted=np.full(noted, -1, np.int64),
            number=np.zeros(6, np.int64),
            rule=np.zeros(4, np.int64),
        )
        self.state.number[core.SPARE] = _ROWS
        self.homes: list[ColumnStreamPool] = []
        self.segments: list[ExpandableSegment] = []
        self._numbers: dict[int, int] = {}
        self._blocks: dict[int, ColumnBlock] = {}

    def block(self, row: int) -> ColumnBlock | None:
        """The object of a row, always the same one; None for -1."""
        if row < 0:
            return None
        found = self._blocks.get(row)
        if found is None:
            found = self._blocks[row] = ColumnBlock(self, row)
        return found

    def blocks(self, rows: IntArray) -> list[Block]:
        """The objects of rows."""
        found = [self.block(row) for row in rows.tolist()]
        return [block for block in found if block is not None]

    def new_row(self) -> int:
        """A row that no block had yet, or has any more."""
        state = self.state
        left = int(state.number[core.SPARE])
        if not left:
            self._add_rows()
            state, left = self.state, int(self.state.number[core.SPARE])
        state.number[core.SPARE] = left - 1
        row = int(state.spare[left - 1])
        state.block[row] = _FRESH
        return row

    def make_room(self, home: int | None = None) -> None:
        """As many rows and as much room as a step may need: in one home, or in all."""
        if self.state.number[core.SPARE] < core.MARGIN:
            self._add_rows()
        count = self.state.home[:, core.COUNT].max(initial=0) if home is None else self.state.home[home, core.COUNT]
        if count + core.MARGIN > self.state.order.shape[1]:
            order = self.state.order
            self.state = self.state._replace(order=np.hstack([order, np.zeros_like(order)]))

    def _add_rows(self) -> None:
        state, rows = self.state, len(self.state.block)
        left = int(state.number[core.SPARE])
        spare = np.concatenate([state.spare[:left], np.arange(rows, 2 * rows)[::-1], np.zeros(rows - left, np.int64)])
        state.number[core.SPARE] = left + rows
        self.state = state._replace(block=np.vstack([state.block, np.zeros_like(state.block)]), spare=spare)

    def add_home(self, home: ColumnStreamPool) -> int:
        """The number of a new home."""
        row = np.array([[0, 0, home.split_limit, home.keep, home.pool.number]], np.int64)
        order = np.zeros((1, self.state.order.shape[1]), np.int64)
        self.state = self.state._replace(
            home=np.vstack([self.state.home, row]), order=np.vstack([self.state.order, order])
        )
        self.homes.append(home)
        return len(self.homes) - 1

    def add_requests(self, count: int) -> None:
        """Further requests, and places for their addresses where these are noted."""
        state = self.state
        more = np.full((count, state.request.shape[1]), -1, np.int64)
        noted = np.append(state.noted, np.full(count if len(state.noted) else 0, -1, np.int64))
        self.state = state._replace(request=np.vstack([state.request, more]), noted=noted)

    def add_pool(self) -> int:
        """The number of a new pool."""
        self.state = self.state._replace(calls=np.append(self.state.calls, 0))
        return len(self.state.calls) - 1

    def number_of(self, segment: ExpandableSegment | None) -> int:
        """The number of an expandable segment; -1 for None."""
        if segment is None:
            return -1
        if id(segment) not in self._numbers:
            self._numbers[id(segment)] = len(self.segments)
            self.segments.append(segment)
        return self._numbers[id(segment)]

    def let_go(self) -> None:
        """Drop what only steps need. Objects and columns refer to each other: they would stay for long without use."""
        none = np.zeros((0, 0), np.int64)
        self.state = self.state._replace(block=none, spare=none.ravel(), order=none, request=none)
        self._blocks.clear()

    def note_unmapped(self) -> None:
        """Tell compiled code which homes have unmapped blocks."""
        for number, home in enumerate(self.homes):
            self.state.home[number, core.HAS_UNMAPPED] = bool(home.unmapped)


def _row(block: Block | None) -> int:
    if block is None:
        return -1
    assert isinstance(block, ColumnBlock), "a block of another replay"
    return block.row


class ColumnBlock(Block):
    """A row, with the attributes of a block."""

    __slots__ = ("row", "store")

    def __init__(self, store: Store, row: int) -> None:
        self.store = store
        self.row = row

    @property
    def address(self) -> int:
        """Where it starts."""
        return int(self.store.state.block[self.row, core.ADDRESS])

    @address.setter
    def address(self, value: int) -> None:
        self.store.state.block[self.row, core.ADDRESS] = value

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self.store.state.block[self.row, core.SIZE])

    @size.setter
    def size(self, value: int) -> None:
        self.store.state.block[self.row, core.SIZE] = value

    @property
    def home(self) -> StreamPool:  # type: ignore[override]
        """The free blocks that it returns to."""
        return self.store.homes[int(self.store.state.block[self.row, core.HOME])]

    @property
    def segment(self) -> ExpandableSegment | None:
        """The expandable segment it belongs to."""
        number = self.store.state.block[self.row, core.SEGMENT]
        return self.store.segments[number] if number >= 0 else None

    @segment.setter
    def segment(self, value: ExpandableSegment | None) -> None:
        self.store.state.block[self.row, core.SEGMENT] = self.store.number_of(value)

    @property
    def prev(self) -> Block | None:
        """The block before it."""
        return self.store.block(int(self.store.state.block[self.row, core.PREV]))

    @prev.setter
    def prev(self, value: Block | None) -> None:
        self.store.state.block[self.row, core.PREV] = _row(value)

    @property
    def next(self) -> Block | None:
        """The block behind it."""
        return self.store.block(int(self.store.state.block[self.row, core.NEXT]))

    @next.setter  # noqa: A003 - the property above
    def next(self, value: Block | None) -> None:
        self.store.state.block[self.row, core.NEXT] = _row(value)

    @property
    def is_free(self) -> bool:
        """Whether it stands in its pool."""
        return bool(self.store.state.block[self.row, core.IS_FREE])

    @is_free.setter
    def is_free(self, value: bool) -> None:
        self.store.state.block[self.row, core.IS_FREE] = value

    @property
    def mapped(self) -> bool:
        """Whether there is memory behind it."""
        return bool(self.store.state.block[self.row, core.MAPPED])

    @mapped.setter
    def mapped(self, value: bool) -> None:
        self.store.state.block[self.row, core.MAPPED] = value

    @property
    def gc_count_base(self) -> int:
        """Calls of get_free_block that its pool had seen when it was put there."""
        return int(self.store.state.block[self.row, core.GC_COUNT_BASE])

    @gc_count_base.setter
    def gc_count_base(self, value: int) -> None:
        self.store.state.block[self.row, core.GC_COUNT_BASE] = value


class ColumnStreamPool(StreamPool):
    """A home whose free blocks stand in columns."""

    __slots__ = ("number", "store")
    pool: ColumnPool

    def __init__(self, store: Store, pool: ColumnPool, stream: int, split_limit: int, keep: int) -> None:
        self.pool, self.stream, self.split_limit, self.keep = pool, stream, split_limit, keep
        self.unmapped = []
        self.store = store
        self.number = store.add_home(self)

    @property
    def rows(self) -> IntArray:
        """The rows of the free blocks, in their order."""
        state = self.store.state
        return state.order[self.number, : state.home[self.number, core.COUNT]]

    @property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """The free blocks, in their order."""
        return self.store.blocks(self.rows)

    @property
    def keys(self) -> list[int]:  # type: ignore[override]
        """Their sizes and addresses."""
        return [block.size << ADDRESS_BITS | block.address for block in self.blocks]

    def new_block(self, address: int, size: int, segment: ExpandableSegment | None = None) -> Block:
        """A block that stands nowhere yet."""
        row, number = self.store.new_row(), self.store.number_of(segment)
        self.store.state.block[row, [core.ADDRESS, core.SIZE, core.HOME, core.SEGMENT]] = (
            address, size, self.number, number,
        )  # fmt: skip
        found = self.store.block(row)
        assert found is not None
        return found

    def insert(self, block: Block) -> None:
        """Put a free block into the pool."""
        self.store.make_room(self.number)
        block.gc_count_base = self.pool.get_free_blocks_call_count
        core.insert(self.store.state, _row(block))

    def erase(self, block: Block) -> None:
        """Take a block out of the pool."""
        core.erase(self.store.state, _row(block))


class ColumnPool(BlockPool):
    """A pool whose clock stands in a column."""

    __slots__ = ("number", "store")

    def __init__(self, store: Store, is_small: bool, owner: int, is_capturing: bool) -> None:
        self.store, self.number = store, store.add_pool()
        super().__init__(is_small, owner, is_capturing)

    @property
    def get_free_blocks_call_count(self) -> int:
        """How often a block was looked for."""
        return int(self.store.state.calls[self.number])

    @get_free_blocks_call_count.setter
    def get_free_blocks_call_count(self, value: int) -> None:
        self.store.state.calls[self.number] = value

    def whole_segments(self) -> list[Block]:
        """The free blocks that are a whole segment from cudaMalloc each."""
        rows = self._rows()
        links = self.store.state.block[rows][:, [core.SEGMENT, core.PREV, core.NEXT]]
        return self.store.blocks(rows[(links < 0).all(axis=1)])

    def expandable_blocks(self, least: int) -> list[Block]:
        """The free blocks of expandable segments of at least so many bytes."""
        rows = self._rows()
        block = self.store.state.block[rows]
        return self.store.blocks(rows[(block[:, core.SEGMENT] >= 0) & (block[:, core.SIZE] >= least)])

    def _rows(self) -> IntArray:
        found = [self.streams[stream].rows for stream in sorted(self.streams)]  # type: ignore[attr-defined]
        return np.concatenate([np.zeros(0, np.int64), *found])


class Pending:
    """The blocks that wait for other streams, as the dictionary of the plain model has them."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def values(self) -> Iterable[Block]:
        """In the order in which they began to wait."""
        if not self.store.state.number[core.WAITING]:
            return []
        request = self.store.state.request
        waiting = request[request[:, core.PENDING] >= 0]
        return self.store.blocks(waiting[np.argsort(waiting[:, core.SINCE]), core.PENDING])

    def clear(self) -> None:
        """None waits any more."""
        if self.store.state.number[core.WAITING]:
            self.store.state.request[:, core.PENDING] = -1
            self.store.state.number[core.WAITING] = 0

    def __setitem__(self, request: int, block: Block) -> None:
        state = self.store.state
        state.number[core.LAST_PENDING] += 1
        state.number[core.WAITING] += 1
        state.request[request, [core.PENDING, core.SINCE]] = _row(block), state.number[core.LAST_PENDING]


class Held:
    """The block of each request, to be set."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __setitem__(self, request: int, block: Block) -> None:
        self.store.state.request[request, core.HELD] = _row(block)
