"""The list of segments, with their blocks, to one layout a device."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from oomscope.errors import SnapshotError
from oomscope.model import (
    Blocks,
    BlockState,
    BoolArray,
    IntArray,
    Layout,
    Segments,
    UInt8Array,
    note,
)
from oomscope.model.arrays import StackArray
from oomscope.model.ordering import ascending
from oomscope.reading import checks
from oomscope.reading.bounds import check_ends, check_sizes
from oomscope.reading.columns import Columns, columns_of, integers, kind_of
from oomscope.reading.tables import Tables
from oomscope.units import MIB

_SEGMENT_KEYS = frozenset(
    {"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream"}
    | {"segment_type", "segment_pool_id", "is_expandable", "frames", "blocks"}
)
_BLOCK_KEYS = frozenset({"address", "size", "requested_size", "state", "frames", "history"})
_STATES = {
    "inactive": BlockState.INACTIVE,
    "active_allocated": BlockState.ACTIVE_ALLOCATED,
    "active_pending_free": BlockState.ACTIVE_PENDING_FREE,
    # The name in torch's documentation; no release writes it.
    "active_awaiting_free": BlockState.ACTIVE_PENDING_FREE,
}
# The allocator's small segments are 2 MiB each; larger ones serve the large pool.
_SMALL_SEGMENT = 2 * MIB


class SegmentReader:
    """Reads one list of segments.

    Args:
        rows: the dicts as torch wrote them, all devices together.
        tables: shared by all parts of the snapshot.
        name: names the list in messages: ``segments``.

    Attributes:
        keys, block_keys: every key that a segment or a block had.

    Raises:
        SnapshotError: a value is missing or of another type.
    """

    def __init__(self, rows: list[Any], tables: Tables, name: str = "segments") -> None:
        self._tables, self._name = tables, name
        self._columns = columns_of(rows, self._where)
        self._count = len(rows)
        block_lists = self._lists_of_blocks()
        # Counted now: a damaged file may use the same list for a stack, which is emptied when it is read.
        self._block_counts = list(map(len, block_lists))
        self._blocks = columns_of(list(chain.from_iterable(block_lists)), self._where_block)
        self.keys, self.block_keys = set(self._columns), set(self._blocks)
        tables.notes.unknown_keys("reading.unknown_segment_key", self._columns, _SEGMENT_KEYS)
        tables.notes.unknown_keys("reading.unknown_block_key", self._blocks, _BLOCK_KEYS)

    def layouts(self) -> dict[int, Layout]:
        """The layout of each device that has segments, by its index; segments and blocks in address order."""
        device = self._integers("device", 0)
        segments, blocks = self._segments(), self._read_blocks()
        order = np.lexsort((segments.address, device))
        layouts = {}
        for index in ascending(device).tolist():
            rows = order[device[order] == index]
            layouts[index] = self._one_device(index, rows, segments, blocks)
        return layouts

    def _one_device(self, index: int, rows: IntArray, segments: Segments, blocks: Blocks) -> Layout:
        sizes = np.diff(segments.first_block)[rows]
        segment = np.repeat(np.arange(len(rows), dtype=np.int64), sizes)
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        picked = np.arange(len(segment)) - first[segment] + segments.first_block[rows][segment]
        picked = picked[np.lexsort((blocks.address[picked], segment))]
        layout = Layout(_take_segments(segments, rows, first), _take_blocks(blocks, picked, segment))
        declared = {key: self._integers(key, -1)[rows] for key in checks.DECLARED if key in self._columns}
        for contradiction in checks.contradictions(layout, declared, index if self._name == "segments" else None):
            self._tables.notes.add(contradiction)
        return layout

    def _segments(self) -> Segments:
        total_size = self._sizes("total_size", self._columns, self._count, self._where)
        is_empty = np.array(self._block_counts, np.int64) == 0
        nothing: list[Any] = [None] * self._count
        # A list made from a profile has segments without address, but only where they hold nothing.
        default = 0 if (is_empty & (total_size == 0)).any() else None
        address = self._integers("address", default)
        check_ends(address, total_size, self._where)
        return Segments(
            address=address,
            total_size=total_size,
            stream=self._integers("stream", 0),
            is_large=self._is_large(total_size),
            is_expandable=np.array(list(map(bool, self._columns.get("is_expandable", nothing))), dtype=np.bool_),
            pool=self._pools(nothing),
            stack=np.array(self._tables.stacks.numbers(self._columns.get("frames", nothing)), dtype=np.int32),
            first_block=np.cumsum([0, *self._block_counts], dtype=np.int64),
        )

    def _is_large(self, total_size: IntArray) -> BoolArray:
        types = self._columns.get("segment_type", [None] * self._count)
        for kind in types:
            if kind not in ("small", "large", None):
                self._tables.notes.unknown("reading.unknown_segment_type", kind)
        if None in types:
            self._tables.notes.add(note("reading.segment_types_missing", count=types.count(None)))
        named = np.array([kind != "small" for kind in types], dtype=np.bool_)
        missing = np.array([kind is None for kind in types], dtype=np.bool_)
        return np.where(missing, total_size > _SMALL_SEGMENT, named)

    def _pools(self, nothing: list[Any]) -> StackArray:
        numbers = self._tables.pools.numbers(self._columns.get("segment_pool_id", nothing), self._where)
        # Releases before 2.1, and XPU, have only the default pool.
        return np.maximum(np.array(numbers, dtype=np.int32), 0)

    def _read_blocks(self) -> Blocks:
        count = sum(self._block_counts)
        size = self._sizes("size", self._blocks, count, self._where_block)
        segment = np.repeat(np.arange(self._count, dtype=np.int64), self._block_counts)
        state = self._states(count)
        histories = self._blocks.get("history", [None] * count)
        address = self._block_addresses(size, segment)
        check_ends(address, size, self._where_block)
        return Blocks(
            address=address,
            size=size,
            requested_size=self._requested_sizes(histories, state),
            state=state,
            stack=self._block_stacks(histories, state),
            segment=segment,
        )

    def _block_addresses(self, size: IntArray, segment: IntArray) -> IntArray:
        """As recorded (torch 2.1+), else where the sizes of the blocks before put them."""
        start = np.cumsum(size) - size
        first = np.searchsorted(segment, np.arange(self._count))
        bases = self._integers("address", 0)
        running = bases[segment] + start - start[first[segment]] if len(size) else start
        addresses = self._blocks.get("address")
        if addresses is None:
            return running
        missing = np.array([address is None for address in addresses], dtype=np.bool_)
        return np.where(missing, running, integers(self._blocks, "address", len(size), self._where_block, 0))

    def _states(self, count: int) -> UInt8Array:
        names = self._blocks.get("state", [None] * count)
        state = np.zeros(count, dtype=np.uint8)
        for row, name in enumerate(names):
            if not isinstance(name, str):
                raise SnapshotError(f"{self._where_block(row)} has {kind_of(name)} as its 'state', not a name.")
            state[row] = _STATES.get(name, BlockState.OTHER)
            if name not in _STATES:
                self._tables.notes.unknown("reading.unknown_block_state", name)
        return state

    def _requested_sizes(self, histories: list[Any], state: UInt8Array) -> IntArray:
        count = len(state)
        if "requested_size" in self._blocks:
            return integers(self._blocks, "requested_size", count, self._where_block, -1)
        # torch 1.13 says it only in the block's history.
        newest: Columns = {"real_size": [_newest(history).get("real_size") for history in histories]}
        recorded = integers(newest, "real_size", count, self._where_block, -1)
        return np.where(state == BlockState.INACTIVE, -1, recorded)

    def _block_stacks(self, histories: list[Any], state: UInt8Array) -> StackArray:
        frames = self._blocks.get("frames")
        if frames is None:
            frames = [_newest(history).get("frames") for history in histories]
        stack = np.array(self._tables.stacks.numbers(frames), dtype=np.int32)
        # What an inactive block's history tells is its last tenant's, who is gone.
        return stack if "frames" in self._blocks else np.where(state == BlockState.INACTIVE, np.int32(-1), stack)

    def _lists_of_blocks(self) -> list[list[Any]]:
        lists = self._columns.get("blocks", [None] * self._count)
        for row, blocks in enumerate(lists):
            if not (blocks is None or isinstance(blocks, list)):
                raise SnapshotError(f"{self._where(row)} has {kind_of(blocks)} as its 'blocks', not a list.")
        return [blocks or [] for blocks in lists]

    def _integers(self, key: str, default: int | None) -> IntArray:
        return integers(self._columns, key, self._count, self._where, default)

    @staticmethod
    def _sizes(key: str, columns: Columns, count: int, where: Any) -> IntArray:
        sizes = integers(columns, key, count, where)
        check_sizes(sizes, key, where)
        return sizes

    def _where(self, row: int) -> str:
        return f"entry {row} of '{self._name}'"

    def _where_block(self, row: int) -> str:
        for number, blocks in enumerate(self._block_counts):
            if row < blocks:
                return f"block {row} of {self._where(number)}"
            row -= blocks
        raise IndexError(row)


def _newest(history: Any) -> dict[str, Any]:
    """The latest tenant in a block's history (torch 1.13 and 2.0)."""
    newest = history[0] if isinstance(history, list) and history else {}
    return newest if isinstance(newest, dict) else {}


def _take_segments(segments: Segments, rows: IntArray, first_block: IntArray) -> Segments:
    return Segments(
        segments.address[rows],
        segments.total_size[rows],
        segments.stream[rows],
        segments.is_large[rows],
        segments.is_expandable[rows],
        segments.pool[rows],
        segments.stack[rows],
        first_block,
    )


def _take_blocks(blocks: Blocks, rows: IntArray, segment: IntArray) -> Blocks:
    return Blocks(
        blocks.address[rows],
        blocks.size[rows],
        blocks.requested_size[rows],
        blocks.state[rows],
        blocks.stack[rows],
        segment,
    )
