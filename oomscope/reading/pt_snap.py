"""The SQLite databases of pt-snap: its trace as it was, and segments and blocks rebuilt from it.

``pt-snap import`` keeps for each device the entries of the trace, the size of every block, and the stacks. It drops
times, pools, settings and the free memory of the card, and the stacks of blocks older than the trace. What was
there before the trace is in it as allocations of segments with negative numbers, and as blocks without an allocation.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import tempfile
from bisect import bisect_left, insort
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oomscope.errors import SnapshotError
from oomscope.reading.limits import Limits
from oomscope.reading.printable import printable

SCHEMA = "pt-snap database"
_TRACE = re.compile(r"trace_entry_(\d{1,3})\Z")
_FRAME = re.compile(r"(.*):(\d{1,9}) (.*)\Z", re.DOTALL)
_ACTIONS = (
    "segment_map", "segment_unmap", "segment_alloc", "segment_free", "alloc", "free_requested", "free_completed",
    "snapshot", "oom",
)  # fmt: skip
"""By their numbers in the database."""
_NUMBERED = " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(_ACTIONS))
_ACTION = f"CASE action {_NUMBERED} ELSE action END"
"""As a number; pt-snap writes some by name."""
_ALLOC, _FREE_REQUESTED, _FREE_COMPLETED, _OOM = (
    _ACTIONS.index(name) for name in ("alloc", "free_requested", "free_completed", "oom")
)
_SMALL_SEGMENT, _MOST_SMALL = 2 << 20, 1 << 20
_LARGEST = 1 << 62
_NONE = -1
_A_ROW = 800
"""Bytes of memory, about, with all that is made of it."""

Row = tuple[int, ...]
Frames = list[dict[str, Any]]


def document_of(contents: bytes, limits: Limits) -> dict[str, Any]:
    """The database in `contents` as the containers that torch would have written.

    Raises:
        SnapshotError: it is another database, or damaged, or asks for more memory than `limits` allow.
    """
    with tempfile.TemporaryDirectory(prefix="oomscope-") as folder:
        path = Path(folder) / "database"
        path.write_bytes(contents)
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.execute("PRAGMA trusted_schema=OFF")
            database.set_authorizer(_only_tables)
            try:
                return _Reader(database, limits, len(contents)).document()
            except sqlite3.Error as error:
                raise SnapshotError(f"the database is damaged ({printable(str(error), 120)}).") from error


def _only_tables(action: int, _first: str | None, _second: str | None, _name: str | None, view: str | None) -> int:
    """Nothing but reading tables: a stranger's views, triggers and functions are refused."""
    allowed = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ) and view is None
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


class _Reader:
    """Reads tables, as long as what they take is in proportion to the file: a default value costs it nothing a row."""

    def __init__(self, database: sqlite3.Connection, limits: Limits, size: int) -> None:
        self._database, self._limits, self._size = database, limits, size
        self._taken = 0

    def document(self) -> dict[str, Any]:
        """All of it."""
        tables = self._select("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in tables if isinstance(name, str)}
        devices = sorted(int(match[1]) for name in names if (match := _TRACE.match(name)))
        if not devices or "callstack" not in names:
            raise SnapshotError("this is an SQLite database that is none of pt-snap's.")
        stacks = self._stacks(has_frames="callstack_frame" in names)
        traces: list[Any] = [[] for _ in range(devices[-1] + 1)]
        segments: list[dict[str, Any]] = []
        for device in devices:
            events = self._rows(f"trace_entry_{device}", f"id, {_ACTION}, address, size, stream, callstackId")
            blocks = self._rows(f"block_{device}", "id, address, size, requestedSize, allocEventId, freeEventId")
            traces[device] = [_entry(row, stacks) for row in events if row[0] >= 0]
            segments += _rebuilt(device, events, blocks, stacks)
        return {"segments": segments, "device_traces": traces}

    def _select(self, query: str) -> Iterator[tuple[Any, ...]]:
        for row in self._database.execute(query):
            self._taken += _A_ROW + sum(len(value) for value in row if isinstance(value, str))
            self._limits.check_memory(self._size, self._taken)
            yield row

    def _rows(self, table: str, columns: str) -> list[Row]:
        """The rows of `table` in the order of their numbers; a table that is not there has none."""
        try:
            rows = list(self._select(f"SELECT {columns} FROM {table} ORDER BY id"))  # noqa: S608 - our own names
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise
        for row in rows:
            # An entry without a stack has none of its numbers.
            if not all(isinstance(value, int) and abs(value) < _LARGEST for value in row[:-1]):
                raise SnapshotError(f"the database is damaged: '{table}' holds what is no number.")
        return [row if isinstance(row[-1], int) else (*row[:-1], _NONE) for row in rows]

    def _stacks(self, *, has_frames: bool) -> dict[int, Frames]:
        """The frames of each stack, innermost first."""
        if not has_frames:
            rows = self._select("SELECT id, callstack FROM callstack")
            return {
                number: [_frame_of(line) for line in reversed(str(text or "").splitlines())] for number, text in rows
            }
        frames = {
            number: {"filename": str(file), "line": line if isinstance(line, int) else 0, "name": str(name)}
            for number, file, line, name in self._select("SELECT id, filename, line, name FROM frame")
        }
        stacks: dict[int, Frames] = {}
        for stack, frame in self._select(
            "SELECT callstackId, frameId FROM callstack_frame ORDER BY callstackId, position"
        ):
            if frame in frames:
                stacks.setdefault(stack, []).append(frames[frame])
        return stacks


def _frame_of(line: str) -> dict[str, Any]:
    match = _FRAME.match(line)
    if match is None:
        return {"filename": line, "line": 0, "name": ""}
    return {"filename": match[1], "line": int(match[2]), "name": match[3]}


def _entry(row: Row, stacks: dict[int, Frames]) -> dict[str, Any]:
    _, action, address, size, stream, stack = row
    if not 0 <= action < len(_ACTIONS):
        raise SnapshotError(f"the database has an action of the unknown number {action}.")
    found = {
        "action": _ACTIONS[action],
        "addr": address,
        "size": size,
        "stream": stream,
        "frames": stacks.get(stack, []),
    }
    if action == _OOM:
        del found["addr"]
    return found


def _rebuilt(device: int, events: list[Row], blocks: list[Row], stacks: dict[int, Frames]) -> Iterator[dict[str, Any]]:
    """The segments at the end of the trace, with their blocks."""
    live = _live(events, blocks, stacks)
    starts = sorted(live)
    asked = sorted((row[2], row[3]) for row in events if row[1] == _ALLOC)
    for begin, size, stream, is_expandable in _segments(events):
        inside = starts[bisect_left(starts, begin) : bisect_left(starts, begin + size)]
        is_small = size == _SMALL_SEGMENT
        if is_expandable:
            ever = asked[bisect_left(asked, (begin, 0)) : bisect_left(asked, (begin + size, 0))]
            sizes = [one[1] for one in ever] + [live[address]["requested_size"] for address in inside]
            is_small = all(one <= _MOST_SMALL for one in sizes)
        yield _segment(device, begin, size, stream, is_small, is_expandable, [live[address] for address in inside])


def _segment(
    device: int, begin: int, size: int, stream: int, is_small: bool, is_expandable: bool, live: list[dict[str, Any]]
) -> dict[str, Any]:
    filled, at = [], begin
    for block in live:
        if block["address"] > at:
            filled.append(_free(at, block["address"] - at))
        filled.append(block)
        at = block["address"] + block["size"]
    if at < begin + size:
        filled.append(_free(at, begin + size - at))
    return {
        "device": device,
        "address": begin,
        "total_size": size,
        "allocated_size": sum(block["size"] for block in live if block["state"] == "active_allocated"),
        "active_size": sum(block["size"] for block in live),
        "requested_size": sum(block["requested_size"] for block in live),
        "stream": stream,
        "segment_type": "small" if is_small else "large",
        "is_expandable": is_expandable,
        "frames": [],
        "blocks": filled,
    }


def _free(address: int, size: int) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": 0, "state": "inactive", "frames": []}


def _live(events: list[Row], blocks: list[Row], stacks: dict[int, Frames]) -> dict[int, dict[str, Any]]:
    """The blocks that are live at the end, by address."""
    sizes = {row[4]: row for row in blocks if row[4] >= 0}
    live = {row[1]: _block(row, []) for row in blocks if row[4] < 0}
    for number, action, address, size, _, stack in events:
        if action == _ALLOC:
            row = sizes.get(number, (number, address, size, size, number, -1))
            live[address] = _block(row, stacks.get(stack, []))
        elif action == _FREE_REQUESTED and address in live:
            live[address] = {**live[address], "state": "active_pending_free"}
        elif action == _FREE_COMPLETED:
            live.pop(address, None)
    return live


def _block(row: Row, frames: Frames) -> dict[str, Any]:
    _, address, size, requested, _, _ = row
    return {
        "address": address, "size": size, "requested_size": requested, "state": "active_allocated", "frames": frames,
    }  # fmt: skip


def _segments(events: list[Row]) -> list[tuple[int, int, int, bool]]:
    """Address, size, stream and whether it is expandable of each segment at the end, by address."""
    fixed: dict[int, tuple[int, int, int, bool]] = {}
    mapped = _Mapped()
    for _, action, address, size, stream, _ in events:
        name = _ACTIONS[action] if 0 <= action < len(_ACTIONS) else ""
        if name == "segment_alloc":
            fixed[address] = address, size, stream, False
        elif name == "segment_free":
            fixed.pop(address, None)
        elif name == "segment_map":
            mapped.add(address, size, stream)
        elif name == "segment_unmap":
            mapped.remove(address, size)
    return sorted([*fixed.values(), *((begin, end - begin, stream, True) for begin, end, stream in mapped.ranges)])


class _Mapped:
    """Ranges of addresses that are mapped: what touches and is of one stream is one range."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int, int]] = []

    def add(self, begin: int, size: int, stream: int) -> None:
        end, at = begin + size, bisect_left(self.ranges, (begin, 0, 0))
        if at < len(self.ranges) and self.ranges[at][0] == end and self.ranges[at][2] == stream:
            end = self.ranges.pop(at)[1]
        if at and self.ranges[at - 1][1] == begin and self.ranges[at - 1][2] == stream:
            begin = self.ranges.pop(at - 1)[0]
        insort(self.ranges, (begin, end, stream))

    def remove(self, begin: int, size: int) -> None:
        end = begin + size
        at = max(bisect_left(self.ranges, (begin, 0, 0)) - 1, 0)
        while at < len(self.ranges) and self.ranges[at][0] < end:
            first, last, stream = self.ranges[at]
            if last <= begin:
                at += 1
                continue
            del self.ranges[at]
            for piece in ((first, begin, stream), (end, last, stream)):
                if piece[0] < piece[1]:
                    self.ranges.insert(at, piece)
                    at += 1
