"""Trace entries to columns, batch by batch."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from oomscope.errors import SnapshotError
from oomscope.model import Action, Trace
from oomscope.reading.columns import Columns, Rows, columns_of, extend_integers, kind_of, to_numpy
from oomscope.reading.pools import NO_POOL
from oomscope.reading.tables import Tables

_KNOWN = frozenset(
    {"action", "addr", "device_free", "size", "stream", "time_us", "frames", "pool_id"}
    | {"compile_context", "user_metadata", "forward_frames"}
)
# What torch writes where there is nothing to say.
_NOTHING = frozenset({"N/A", "", None})
_ADDRESSLESS = frozenset({Action.SNAPSHOT, Action.OOM, Action.ANNOTATE, Action.USER_DEFINED, Action.OTHER})
_BATCH = 1_000
# The names met so far that are known: an IntEnum's own lookup is too slow for every entry.
_NUMBERS: dict[str, int] = {}


class TraceBuilder:
    """The columns of one device's trace, growing.

    Args:
        name: names the trace in messages: ``device 0's trace``.
        tables: shared by all parts of the snapshot.

    Attributes:
        keys: every key that an entry had.
    """

    def __init__(self, name: str, tables: Tables) -> None:
        self.name = name
        self.keys: set[Any] = set()
        self._tables = tables
        self._action = bytearray()
        self._address, self._size, self._stream = array("q"), array("q"), array("q")
        self._stack = array("i")
        self._time, self._untimed = array("q"), 0
        self._pool: array[int] | None = None
        self._texts: dict[str, int] = {}
        self._labels: dict[str, array[int]] = {}
        self._forward: dict[int, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._action)

    def where(self, row: int) -> str:
        """Names an entry by its number in the batch that is being taken."""
        return f"Entry {len(self._size) + row:,} of {self.name}"

    def extend_all(self, rows: Rows) -> None:
        """Append any number of entries."""
        for start in range(0, len(rows), _BATCH):
            self.extend(rows[start : start + _BATCH])

    def extend(self, rows: Rows) -> None:
        """Append a batch of entries.

        Raises:
            SnapshotError: an entry is not what torch writes.
        """
        columns, count = columns_of(rows, self.where), len(rows)
        nothing = [None] * count
        actions = self._actions(columns.get("action", nothing))
        addresses, default = self._addresses(columns, actions, nothing)
        base = len(self._size)
        stack = self._tables.stacks.numbers(columns.get("frames", nothing))
        self._add_pools(columns.get("pool_id"), count)
        for key in ("compile_context", "user_metadata"):
            self._add_texts(key, columns.get(key, nothing))
        self._add_forward(columns.get("forward_frames", nothing))
        self._untimed += extend_integers(self._time, columns.get("time_us", nothing), self.where, "time_us", 0)
        extend_integers(self._address, addresses, self.where, "addr", default)
        extend_integers(self._stream, columns.get("stream", nothing), self.where, "stream")
        self._stack.fromlist(stack)
        self._action += actions
        # Last, for `where` counts by it.
        extend_integers(self._size, columns.get("size", nothing), self.where, "size")
        assert len(self._size) == base + count
        self._note_keys(columns)

    def _actions(self, names: list[Any]) -> bytes:
        try:
            return bytes(map(_NUMBERS.__getitem__, names))
        except (KeyError, TypeError):
            return bytes(self._action_number(name, row) for row, name in enumerate(names))

    def _action_number(self, name: Any, row: int) -> int:
        if not isinstance(name, str):
            raise SnapshotError(f"{self.where(row)} has {kind_of(name)} as its 'action', not a name.")
        action = Action.from_name(name)
        if action is Action.OTHER:
            self._tables.notes.unknown("action in the trace", name)
        else:
            _NUMBERS[name] = int(action)
        return action

    def _addresses(self, columns: Columns, actions: bytes, nothing: list[Any]) -> tuple[list[Any], int | None]:
        """The addresses, and what stands for a missing one (an error where the action needs one)."""
        addresses = columns.get("addr", nothing)
        if "device_free" in columns:
            free = columns["device_free"]
            addresses = [own if own is not None else other for own, other in zip(addresses, free, strict=True)]
        if None not in addresses:
            return addresses, None
        needed = any(
            address is None and action not in _ADDRESSLESS for address, action in zip(addresses, actions, strict=True)
        )
        return addresses, None if needed else 0

    def _add_pools(self, ids: list[Any] | None, count: int) -> None:
        if ids is None and self._pool is None:
            return
        if self._pool is None:
            self._pool = array("i", [NO_POOL]) * len(self._action)
        self._pool.fromlist([NO_POOL] * count if ids is None else self._tables.pools.numbers(ids, self.where))

    def _add_texts(self, key: str, texts: list[Any]) -> None:
        column = self._labels.get(key)
        if column is None:
            try:
                if _NOTHING.issuperset(texts):
                    return
            except TypeError:
                pass  # named below
            column = self._labels[key] = array("i", [-1]) * len(self._action)
        column.fromlist([self._text_number(text, row, key) for row, text in enumerate(texts)])

    def _text_number(self, text: Any, row: int, key: str) -> int:
        if not (text is None or isinstance(text, str)):
            raise SnapshotError(f"{self.where(row)} has {kind_of(text)} as '{key}', not a text.")
        return -1 if text in _NOTHING else self._texts.setdefault(text, len(self._texts))

    def _add_forward(self, tracebacks: list[Any]) -> None:
        for row, lines in enumerate(tracebacks):
            if lines:
                if not (isinstance(lines, list) and all(isinstance(line, str) for line in lines)):
                    raise SnapshotError(f"{self.where(row)} has 'forward_frames' that are not a list of texts.")
                self._forward[len(self._action) + row] = tuple(lines)

    def _note_keys(self, columns: Columns) -> None:
        self.keys.update(columns)
        for key in columns.keys() - _KNOWN:
            values = columns[key]
            self._tables.notes.unknown("key of trace entries", key, len(values) - values.count(None))

    def finish(self) -> Trace:
        """The trace of all entries so far."""
        count = len(self)
        if 0 < self._untimed < count:
            self._tables.notes.add(
                f"{self._untimed:,} of {count:,} entries of {self.name} carry no time; its times are not used."
            )
        return Trace(
            action=np.frombuffer(self._action, dtype=np.uint8),
            address=to_numpy(self._address),
            size=to_numpy(self._size),
            stream=to_numpy(self._stream),
            time_us=to_numpy(self._time) if not self._untimed else np.zeros(count, np.int64),
            stack=to_numpy(self._stack),
            pool=np.full(count, NO_POOL, np.int32) if self._pool is None else to_numpy(self._pool),
            timed=not self._untimed,
            compile_context=self._label("compile_context"),
            user_metadata=self._label("user_metadata"),
            texts=tuple(self._texts),
            forward_stacks=self._forward,
        )

    def _label(self, key: str) -> Any:
        return to_numpy(self._labels[key]) if key in self._labels else None
