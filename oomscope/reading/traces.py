"""Trace entries to columns, batch by batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oomscope.errors import SnapshotError
from oomscope.model import Action, IntArray, Trace, UInt8Array, note
from oomscope.reading.bounds import LARGEST_REQUEST, check_sizes
from oomscope.reading.columns import GrowingColumn, Rows, columns_of, kind_of
from oomscope.reading.pools import NO_POOL
from oomscope.reading.tables import Tables

_KNOWN = frozenset(
    {"action", "addr", "device_free", "size", "stream", "time_us", "frames", "pool_id"}
    | {"compile_context", "user_metadata", "internal_metadata", "forward_frames"}
)
_LABELS = ("compile_context", "user_metadata", "internal_metadata")
# What torch writes where there is nothing to say.
_NOTHING: frozenset[str | None] = frozenset({"N/A", "", None})
NO_TEXT = -1
_ADDRESSLESS = frozenset({Action.SNAPSHOT, Action.OOM, Action.ANNOTATE, Action.USER_DEFINED, Action.OTHER})
_BATCH = 1_000
# An IntEnum's own lookup is too slow for every entry.
ACTION_NUMBERS = {action.name.lower(): int(action) for action in Action if action is not Action.OTHER}


class EntryColumns(NamedTuple):
    """Some entries, already in columns; all arrays have one value an entry.

    Attributes:
        keys: every key that one of them has.
        action: numbers of `Action`.
        address, size, stream, time_us: as in `Trace`.
        timeless: how many of them have no time; theirs is 0.
        stack: numbers in the table of stacks.
        pool: numbers in the table of pools; None where they have none.
    """

    keys: frozenset[str]
    action: UInt8Array
    address: IntArray
    size: IntArray
    stream: IntArray
    time_us: IntArray
    timeless: int
    stack: IntArray
    pool: IntArray | None


class TraceBuilder:
    """The columns of one device's trace, growing.

    Args:
        name: names the trace in messages: ``device 0's trace``.
        tables: shared by all parts of the snapshot.
        device: whose trace it is; None: the host's, or not known yet.

    Attributes:
        keys: every key that an entry had.
    """

    def __init__(self, name: str, tables: Tables, device: int | None = None) -> None:
        self.name, self.device = name, device
        self.keys: set[Any] = set()
        self._tables = tables
        self._action = bytearray()
        self._address, self._size, self._stream = GrowingColumn(), GrowingColumn(), GrowingColumn()
        self._streamless = 0
        self._stack = GrowingColumn("i")
        self._time, self._timeless = GrowingColumn(), 0
        self._pool: GrowingColumn | None = None
        self._texts = dict.fromkeys(_NOTHING, NO_TEXT)
        self._labels: dict[str, GrowingColumn] = {}
        self._forward: dict[int, tuple[str, ...]] = {}
        self._tracebacks: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._action)

    def where(self, row: int) -> str:
        """Names an entry by its row in the batch that is being taken."""
        return f"entry {len(self) + row:,} of {self.name}"

    def extend_all(self, entries: Rows) -> None:
        """Append any number of entries."""
        for start in range(0, len(entries), _BATCH):
            self.extend(entries[start : start + _BATCH])

    def extend(self, entries: Rows) -> None:
        """Append a batch of entries. Their stacks are emptied, see `StackInterner.numbers`.

        Raises:
            SnapshotError: an entry is not what torch writes. The builder is of no use any longer.
        """
        columns = columns_of(entries, self.where)
        self.keys.update(columns)
        self._tables.notes.unknown_keys("reading.unknown_trace_key", columns, _KNOWN)
        nothing = [None] * len(entries)
        actions = self._actions(columns.get("action", nothing))
        self._add_addresses(columns.get("addr", nothing), columns.get("device_free"), actions)
        self._size.extend_checked(columns.get("size", nothing), self.where, "size")
        self._streamless += self._stream.extend_checked(columns.get("stream", nothing), self.where, "stream", 0)
        self._timeless += self._time.extend_checked(columns.get("time_us", nothing), self.where, "time_us", 0)
        self._stack.extend(self._tables.stacks.numbers(columns.get("frames", nothing)))
        self._add_pools(columns.get("pool_id"), len(entries))
        for key in _LABELS:
            self._add_texts(key, columns.get(key, nothing))
        if "forward_frames" in columns:
            self._add_forward(columns["forward_frames"])
        # Last, for the length of the trace is that of this column.
        self._action += actions

    def extend_columns(self, columns: EntryColumns) -> None:
        """Append entries that were read as columns, without labels."""
        count = len(columns.action)
        self.keys |= columns.keys
        self._address.extend_array(columns.address)
        self._size.extend_array(columns.size)
        self._stream.extend_array(columns.stream)
        self._time.extend_array(columns.time_us)
        self._timeless += columns.timeless
        self._stack.extend_array(columns.stack)
        if columns.pool is not None or self._pool is not None:
            if self._pool is None:
                self._pool = GrowingColumn("i")
                self._pool.pad(NO_POOL, len(self))
            self._pool.extend_array(np.full(count, NO_POOL) if columns.pool is None else columns.pool)
        for label in self._labels.values():
            label.pad(NO_TEXT, count)
        self._action += columns.action.tobytes()

    def _actions(self, names: list[Any]) -> bytes:
        try:
            return bytes(map(ACTION_NUMBERS.__getitem__, names))
        except (KeyError, TypeError):
            return bytes(self._action_number(name, row) for row, name in enumerate(names))

    def _action_number(self, name: Any, row: int) -> int:
        if not isinstance(name, str):
            raise SnapshotError(f"{self.where(row)} has {kind_of(name)} as its 'action', not a name.")
        action = Action.from_name(name)
        if action is Action.OTHER:
            self._tables.notes.unknown("reading.unknown_action", name)
        return action

    def _add_addresses(self, addresses: list[Any], free: list[Any] | None, actions: bytes) -> None:
        """Addresses, or the device's free bytes in their place (OOM); 0 where an action has neither."""
        if free is not None:
            addresses = [own if own is not None else other for own, other in zip(addresses, free, strict=True)]
        try:
            self._address.extend_checked(addresses, self.where, "addr")
        except SnapshotError:
            missing = {action for value, action in zip(addresses, actions, strict=True) if value is None}
            if not missing <= _ADDRESSLESS:
                raise
            self._address.extend_checked(addresses, self.where, "addr", 0)

    def _add_pools(self, ids: list[Any] | None, count: int) -> None:
        if ids is None and self._pool is None:
            return
        if self._pool is None:
            self._pool = GrowingColumn("i")
            self._pool.pad(NO_POOL, len(self))
        if ids is None:
            self._pool.pad(NO_POOL, count)
        else:
            self._pool.extend(self._tables.pools.numbers(ids, self.where))

    def _add_texts(self, key: str, texts: list[Any]) -> None:
        column = self._labels.get(key)
        if column is None:
            try:
                if _NOTHING.issuperset(texts):
                    return
            except TypeError:
                pass  # named below
            column = self._labels[key] = GrowingColumn("i")
            column.pad(NO_TEXT, len(self))
        try:
            column.extend(list(map(self._texts.__getitem__, texts)))
        except (KeyError, TypeError):
            column.extend([self._text_number(text, row, key) for row, text in enumerate(texts)])

    def _text_number(self, text: Any, row: int, key: str) -> int:
        if not (text is None or isinstance(text, str)):
            raise SnapshotError(f"{self.where(row)} has {kind_of(text)} as '{key}', not a text.")
        return self._texts.setdefault(text, len(self._texts) - len(_NOTHING))

    def _add_forward(self, tracebacks: list[Any]) -> None:
        for row, lines in enumerate(tracebacks):
            if lines:
                if not (isinstance(lines, list) and all(isinstance(line, str) for line in lines)):
                    raise SnapshotError(f"{self.where(row)} has 'forward_frames' that are not a list of texts.")
                told = tuple(lines)
                # Each backward of one line has the same: a string of its own for each would fill memory.
                self._forward[len(self) + row] = self._tracebacks.setdefault(told, told)

    def finish(self) -> Trace:
        """The trace of all entries.

        Raises:
            SnapshotError: an entry has a size that none can have.
        """
        count, size = len(self), self._sizes()
        if 0 < self._timeless < count:
            self._tables.notes.add(note("reading.times_missing", device=self.device, count=self._timeless))
        if self._streamless:
            self._tables.notes.add(note("reading.streams_missing", device=self.device, count=self._streamless))
        return Trace(
            action=np.frombuffer(self._action, dtype=np.uint8),
            address=self._address.to_numpy(),
            size=size,
            stream=self._stream.to_numpy(),
            time_us=self._time.to_numpy() if not self._timeless else np.zeros(count, np.int64),
            stack=self._stack.to_numpy(),
            pool=np.full(count, NO_POOL, np.int32) if self._pool is None else self._pool.to_numpy(),
            timed=not self._timeless,
            compile_context=self._label("compile_context"),
            user_metadata=self._label("user_metadata"),
            internal_metadata=self._label("internal_metadata"),
            texts=tuple(text for text, number in self._texts.items() if number != NO_TEXT and text is not None),
            forward_stacks=self._forward,
        )

    def _sizes(self) -> IntArray:
        size: IntArray = self._size.to_numpy()
        failed = np.frombuffer(self._action, dtype=np.uint8) == Action.OOM
        check_sizes(np.where(failed & (size >= 0), 0, size), "size", lambda row: f"entry {row:,} of {self.name}")
        clamped = int(np.count_nonzero(failed & (size > LARGEST_REQUEST)))
        if not clamped:
            return size
        found = note("reading.requests_clamped", device=self.device, count=clamped, bytes=LARGEST_REQUEST)
        self._tables.notes.add(found)
        return np.minimum(size, LARGEST_REQUEST)

    def _label(self, key: str) -> Any:
        return self._labels[key].to_numpy() if key in self._labels else None
