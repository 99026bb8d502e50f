"""What-if answers as a reader sees them: the same headings, cells, notes and conditions in every format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from oomscope.analysis.whatif.records import WhatIf, WhatIfRow
from oomscope.rendering.common.tables import Table
from oomscope.units import format_bytes, format_count, format_limit, plural
from oomscope.wording.clean import clean

UNKNOWN = "–"

TITLE = "What other settings would have done"
HEADINGS = ("setting", "outcome", "headroom", "peak", "end", "retries", "least")
RIGHT = frozenset({2, 3, 4, 5, 6})
"""The columns of figures."""

EXPLAINED = (
    "outcome: the run lives, or is out of memory after so many allocs; headroom: the limit less the peak, or what the "
    "request that failed lacked; peak, end: reserved memory at its most and at the end; retries: how often all cached "
    "blocks were given back for one request, which costs time; least: the least limit from which on the run "
    "lives, rounded up."
)
"""What the headings mean."""

CONDITIONS = (
    "Holds for the same program up to the last recorded entry: the same requests in the same order, freed at the same "
    "points. Where the order of segment addresses matters, notes say how many orders were tried, and give the range; "
    "an outcome is stated only where all of them agree, and all limits that the recording allows. Not replayed: what a "
    "program does after an out-of-memory error that it caught, or because of how much memory is free; frees whose "
    "moment the GPU decides (record_stream); calls of empty_cache that freed nothing in the recorded run; and the "
    "memory that CUDA and other processes take."
)
"""What every answer assumes."""

_RANGES = (
    ("peak_reserved", "peak", format_bytes),
    ("final_reserved", "end", format_bytes),
    ("peak_allocated", "in use", format_bytes),
    ("retries", "retries", format_count),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure: as it reads, and exact to the byte where it is one of bytes."""

    text: str
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One setting.

    Attributes:
        setting: its name.
        cells: one for each heading behind the first.
        marks: the numbers of the notes that hold for it, from 1.
    """

    setting: str
    cells: tuple[Cell, ...]
    marks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """An answer, in words.

    Attributes:
        check: one sentence: whether the replay can be trusted.
        rows: the table.
        notes: what holds for some rows, one sentence each; a row's marks count them.
        common: sentences on all rows.
        explained: what the headings mean.
        conditions: what every answer assumes.
    """

    check: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    common: str
    explained: str = EXPLAINED
    conditions: str = CONDITIONS

    @property
    def table(self) -> Table:
        """The rows as plain text, the marks in brackets behind the setting."""
        rows = tuple((_marked(row), *(cell.text for cell in row.cells)) for row in self.rows)
        return Table(TITLE, HEADINGS, rows, RIGHT)

    @property
    def numbered(self) -> tuple[str, ...]:
        """The notes behind their numbers, as the table has them."""
        return tuple(f"[{number}] {note}" for number, note in enumerate(self.notes, 1))


def view(answer: WhatIf) -> WhatIfView:
    """`answer` in words; what was a stranger's is clean, but not escaped for any format."""
    each = [list(_notes(row, answer.self_check.reason)) for row in answer.rows]
    common = [note for note in (each[0] if each else ()) if all(note in notes for notes in each)]
    notes = list(dict.fromkeys(note for found in each for note in found if note not in common))
    rows = tuple(
        Row(
            clean(row.setting, 200),
            _cells(row),
            tuple(sorted(notes.index(note) + 1 for note in found if note in notes)),
        )
        for row, found in zip(answer.rows, each, strict=True)
    )
    return WhatIfView(
        self_check_text(answer), rows, tuple(map(_sentence, notes)), " ".join(_on_all_rows(answer, common))
    )


def self_check_text(answer: WhatIf) -> str:
    """One sentence: whether the replay can be trusted."""
    check = answer.self_check
    if not check.exact:
        return f"Self-check failed: {check.reason}."
    compared = f"all {format_count(check.addresses)} addresses and {plural(check.segment_events, 'segment event')}"
    sentence = f"Self-check: replaying the recorded setting gives {compared} of the recording."
    return sentence if check.reason is None else f"{sentence} But {check.reason}."


def outcome_text(row: WhatIfRow) -> str:
    """``lives``, ``OOM after 12,976``, or that neither is certain."""
    if row.oom is None:
        return UNKNOWN if row.peak_reserved is None else "not certain"
    if not row.oom:
        return "lives"
    return "OOM" if row.failed_allocation is None else f"OOM after {format_count(row.failed_allocation)}"


def headroom_text(row: WhatIfRow) -> str:
    """``110 MiB``, or ``lacks 1.71 GiB``."""
    if row.headroom is not None and row.headroom < 0:
        return f"lacks {format_bytes(-row.headroom)}"
    return _bytes(row.headroom)


def _marked(row: Row) -> str:
    return f"{row.setting} [{', '.join(map(str, row.marks))}]" if row.marks else row.setting


def _cells(row: WhatIfRow) -> tuple[Cell, ...]:
    return (
        Cell(outcome_text(row)),
        Cell(headroom_text(row), row.headroom),
        Cell(_bytes(row.peak_reserved), row.peak_reserved),
        Cell(_bytes(row.final_reserved), row.final_reserved),
        Cell(UNKNOWN if row.retries is None else format_count(row.retries)),
        Cell(UNKNOWN if row.least_memory is None else format_limit(row.least_memory), row.least_memory),
    )


def _bytes(value: int | None) -> str:
    return UNKNOWN if value is None else format_bytes(value)


def _notes(row: WhatIfRow, said: str | None) -> Iterator[str]:
    """What holds for a row: what the replays noted, but for the reason already `said`; and its ranges."""
    yield from (clean(note.removesuffix(f": {said}"), 400) for note in row.notes)
    ranges = [
        f"{word} {span}"
        for name, word, form in _RANGES
        if (span := _span(row.range.get(name, (0, 0)), form)) is not None
    ]
    if ranges:
        yield f"over the orders of addresses: {', '.join(ranges)}"
    elif any(low != high for low, high in row.range.values()):
        yield "the orders of addresses differ by less than is shown"


def _span(ends: Iterable[int], form: Callable[[int], str] = format_bytes) -> str | None:
    """``18.0 GiB to 18.4 GiB``; None where both read the same."""
    low, high = map(form, ends)
    return None if low == high else f"{low} to {high}"


def _on_all_rows(answer: WhatIf, common: list[str]) -> Iterator[str]:
    yield from (clean(note, 400) for note in answer.notes)
    if common:
        yield f"All rows: {'; '.join(common)}."
    limits = list(dict.fromkeys(row.limit for row in answer.rows))
    if limits == [None]:
        yield "No limit is known, so none is applied; a card ends sooner or later."
    elif limits:
        yield f"Limit: {', '.join(map(_bytes, limits))}."
    used = [row.peak_allocated for row in answer.rows if row.peak_allocated is not None]
    if used:
        span = _span((min(used), max(used)))
        yield f"In use at the most: {format_bytes(used[0]) if span is None else f'{span}, by the row'}."
    if answer.skipped:
        yield f"Left out for want of time: {clean(', '.join(answer.skipped), 400)}."


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}."
