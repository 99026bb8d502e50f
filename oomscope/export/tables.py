"""A snapshot as tables, for CSV, Parquet and whatever reads those: rows are made in parts, as columns.

Bytes are integers, times microseconds since the epoch, instants numbers of entries. What is not known, or happened
before or after the recording, is null: `born` of what was there when it began, `freed` of what is there at its end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from oomscope.analysis.attribution.sites import NO_LOCATION
from oomscope.analysis.passes.steps import recorded_names
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.frozen import frozen
from oomscope.history import BEFORE
from oomscope.model import Action, BoolArray, IntArray, StackTable
from oomscope.wording.clean import clean

ROWS = 50_000
"""Rows that are made at once."""
_LONGEST = 4096
"""Characters of a text."""
_HIGHEST_LINE = (1 << 31) - 1
"""Unresolved C++ frames have numbers beyond, which are no lines."""
END_STATES = ("allocated", "pending_free", "gone")
"""What became of an allocation by the end of the recording."""


@frozen
class Column:
    """Some rows of a column.

    Attributes:
        values: numbers, or where there are `texts` their numbers.
        known: which of them are known; None: all.
        texts: the distinct texts; None for numbers.
    """

    values: npt.NDArray[np.integer]
    known: BoolArray | None = None
    texts: tuple[str, ...] | None = None

    def listed(self) -> list[int | str | None]:
        """The rows as plain Python values."""
        rows = self.values.tolist()
        known = [True] * len(rows) if self.known is None else self.known.tolist()
        if self.texts is None:
            return [row if there else None for row, there in zip(rows, known, strict=True)]
        return [self.texts[row] if there else None for row, there in zip(rows, known, strict=True)]


Columns = dict[str, Column]


@frozen
class ExportTable:
    """A table whose rows are made when they are asked for.

    Attributes:
        name: what it is called.
        parts: makes its rows, some at a time; there is always one part, if without rows.
    """

    name: str
    parts: Callable[[], Iterator[Columns]] = field(repr=False)


def tables(study: SnapshotStudy) -> tuple[ExportTable, ...]:
    """All tables of a snapshot: `lifetimes`, `curves`, `steps`, `recorded-steps` and `stacks`.

    Args:
        study: of the snapshot.
    """
    return tuple(ExportTable(name, lambda make=make: make(study)) for name, make in _MAKERS.items())  # type: ignore[misc]


def _texts(names: Sequence[str | None]) -> Column:
    """A column of `names`, each distinct one once."""
    number: dict[str, int] = {}
    rows = [-1 if name is None else number.setdefault(clean(name, _LONGEST), len(number)) for name in names]
    values = np.array(rows, np.int32)
    return Column(values, values >= 0, tuple(number))


def _numbers(values: Sequence[int | None]) -> Column:
    known = np.array([value is not None for value in values], np.bool_)
    return Column(np.array([value or 0 for value in values], np.int64), known)


def _lines(numbers: Sequence[int | None]) -> Column:
    return _numbers([line if line is not None and 0 <= line <= _HIGHEST_LINE else None for line in numbers])


def _same(value: int, count: int) -> Column:
    return Column(np.full(count, value, np.int64))


class _Times:
    """Entries of one device as columns: their numbers, and when they happened."""

    def __init__(self, device: DeviceStudy) -> None:
        self._trace, self._recorded = device.history.trace, device.history.recorded

    def entry(self, entries: IntArray) -> Column:
        """`entries`; null for what lies before or after the trace."""
        return Column(entries, self._inside(entries))

    def time(self, entries: IntArray) -> Column:
        """Their times; null where the recording has none."""
        if not (self._trace.timed and self._recorded):
            return Column(np.zeros(len(entries), np.int64), np.zeros(len(entries), np.bool_))
        inside = self._inside(entries)
        return Column(self._trace.time_us[np.where(inside, entries, 0)], inside)

    def _inside(self, entries: IntArray) -> BoolArray:
        inside: BoolArray = (entries > BEFORE) & (entries < self._recorded)
        return inside


class _Places:
    """Sites and callers of all stacks as texts."""

    def __init__(self, study: SnapshotStudy) -> None:
        where = [study.sites.location(number) for number in range(len(study.sites))]
        self.line = _lines([one.line if one else None for one in where])
        self.file = _texts([one.file if one else None for one in where])
        self.function = _texts([one.function if one else None for one in where])

    def columns(self, kind: str, number: npt.NDArray[np.int32]) -> Columns:
        """File, line and function of locations, by their numbers."""
        known = number != NO_LOCATION
        at = np.where(known, number, 0)
        parts = {"file": self.file, "line": self.line, "function": self.function}
        return {f"{kind}_{name}": _taken(column, at, known) for name, column in parts.items()}


def _taken(column: Column, rows: npt.NDArray[np.integer], known: BoolArray) -> Column:
    """`rows` of `column`, of which only some are `known`."""
    if not len(column.values):
        return Column(np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_), column.texts)
    also = True if column.known is None else column.known[rows]
    return Column(column.values[rows], known & also, column.texts)


def _ranges(count: int) -> Iterator[slice]:
    """Rows in parts; at least one part."""
    for begin in range(0, max(count, 1), ROWS):
        yield slice(begin, min(begin + ROWS, count))


def _lifetimes(study: SnapshotStudy) -> Iterator[Columns]:
    places = _Places(study)
    for device in study.devices:
        for rows in _ranges(len(device.history.lifetimes)):
            yield _lifetime_rows(study, device, rows, places)


def _lifetime_rows(study: SnapshotStudy, device: DeviceStudy, rows: slice, places: _Places) -> Columns:
    history, times = device.history, _Times(device)
    lifetimes, group = history.lifetimes, device.attribution.group[rows]
    born, freed, gone = lifetimes.born[rows], lifetimes.freed[rows], lifetimes.gone[rows]
    labels = _texts(device.attribution.label)
    span = history.span[rows]
    pool = history.spans.pool[np.maximum(span, 0)] if len(history.spans) else np.zeros(len(span), np.int32)
    requested, stack = lifetimes.requested[rows], lifetimes.stack[rows]
    return {
        "device": _same(device.index, len(born)),
        "address": Column(lifetimes.address[rows].view(np.uint64)),
        "bytes": Column(history.size[rows]),
        "bytes_uncertain": Column(history.slack[rows]),
        "requested_bytes": Column(requested, requested >= 0),
        "born": times.entry(born),
        "freed": times.entry(freed),
        "gone": times.entry(gone),
        "born_us": times.time(born),
        "freed_us": times.time(freed),
        "gone_us": times.time(gone),
        "end_state": Column((freed < history.entries).astype(np.int64) + (gone < history.entries), None, END_STATES),
        "stream": Column(lifetimes.stream[rows]),
        "pool": Column(pool, span >= 0, tuple(map(str, study.snapshot.pools))),
        "category": Column(device.categories[rows], None, CATEGORIES),
        "phase": Column(device.phases[rows], None, PHASES),
        **places.columns("site", device.attribution.site[group]),
        **places.columns("caller", device.attribution.caller[group]),
        "no_site_because": Column(labels.values[group], labels.values[group] >= 0, labels.texts),
        "stack": Column(stack, stack >= 0),
    }


def _curves(study: SnapshotStudy) -> Iterator[Columns]:
    """Bytes after each entry; the first row of a device is what was there before it."""
    actions = {int(action): number for number, action in enumerate(Action)}
    number_of = np.array([actions.get(value, actions[Action.OTHER]) for value in range(256)], np.int64)
    names = tuple(action.name.lower() for action in Action)
    for device in study.devices:
        history, times = device.history, _Times(device)
        for rows in _ranges(history.recorded + 1):
            entry = np.arange(rows.start, rows.stop) + BEFORE
            there = entry > BEFORE
            action = (
                history.trace.action[np.maximum(entry, 0)] if len(history.trace) else np.zeros(len(entry), np.int64)
            )
            yield {
                "device": _same(device.index, len(entry)),
                "entry": times.entry(entry),
                "time_us": times.time(entry),
                "action": Column(number_of[action], there, names),
                **{name: Column(getattr(history.curves, name)[rows]) for name in ("allocated", "active", "reserved")},
            }


def _steps(study: SnapshotStudy) -> Iterator[Columns]:
    """The steps within the trace."""
    for device in study.devices:
        steps, times = device.steps, _Times(device)
        begin = np.array([step.begin for step in steps.steps], np.int64)
        end = np.array([step.end for step in steps.steps], np.int64)
        yield {
            "device": _same(device.index, len(begin)),
            "step": _texts([step.name for step in steps.steps]),
            "source": _texts([steps.source] * len(begin)),
            "first_entry": times.entry(begin),
            "last_entry": times.entry(end),
            "begin_us": times.time(begin),
            "end_us": times.time(end),
            "peak_allocated": _numbers([step.peak_allocated for step in steps.steps]),
            "peak_entry": _numbers([step.peak_entry for step in steps.steps]),
            "end_allocated": _numbers([step.end_allocated for step in steps.steps]),
        }


def _recorded_steps(study: SnapshotStudy) -> Iterator[Columns]:
    """The steps that oomscope recorded, also those that the trace no longer holds; one row a step and device."""
    steps = sorted(study.snapshot.recorded.steps, key=lambda step: step.begin_us)
    names, _ = recorded_names(steps)
    for device in study.devices:
        levels = {
            name: _numbers([_at(getattr(step, name), device.index) for step in steps])
            for name in ("allocated", "reserved", "peak_allocated", "peak_reserved")
        }
        yield {
            "device": _same(device.index, len(steps)),
            "step": _texts(names),
            "begin_us": _numbers([step.begin_us for step in steps]),
            "end_us": _numbers([step.end_us for step in steps]),
            **levels,
            "retries": _numbers([step.retries for step in steps]),
            "shape": _texts([json.dumps(step.shape, default=str) if step.shape else None for step in steps]),
        }


def _at(levels: tuple[int | None, ...], index: int) -> int | None:
    return levels[index] if index < len(levels) else None


def _stacks(study: SnapshotStudy) -> Iterator[Columns]:
    """Every frame of every stack; depth 0 is the innermost call."""
    stacks: StackTable = study.snapshot.stacks
    file = _texts([frame.filename for frame in stacks.frames])
    function = _texts([frame.name for frame in stacks.frames])
    line = _lines([frame.line for frame in stacks.frames])
    of_member = np.repeat(np.arange(len(stacks)), np.diff(stacks.offsets))
    depth = np.arange(len(stacks.members)) - stacks.offsets[of_member]
    for rows in _ranges(len(stacks.members)):
        frame = stacks.members[rows]
        yield {
            "stack": Column(of_member[rows]),
            "depth": Column(depth[rows]),
            "file": Column(file.values[frame], None, file.texts),
            "line": _taken(line, frame, np.ones(len(frame), np.bool_)),
            "function": Column(function.values[frame], None, function.texts),
        }


_MAKERS: dict[str, Callable[[SnapshotStudy], Iterator[Columns]]] = {
    "lifetimes": _lifetimes,
    "curves": _curves,
    "steps": _steps,
    "recorded-steps": _recorded_steps,
    "stacks": _stacks,
}
TABLES = tuple(_MAKERS)
