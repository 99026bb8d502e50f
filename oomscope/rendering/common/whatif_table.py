"""What-if answers as a reader sees them: the same headings, cells, notes and conditions in every format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.whatif.records import RECORDED, WhatIf, WhatIfRow
from oomscope.frozen import frozen
from oomscope.model import Note
from oomscope.rendering.common.tables import Table
from oomscope.units import format_bytes, format_count, format_limit
from oomscope.wording import say
from oomscope.wording.clean import clean
from oomscope.wording.whatif_table import (
    CONDITIONS,
    EXPLAINED,
    HEADINGS,
    TITLE,
    UNKNOWN,
    headroom_text,
    outcome_text,
    self_check_text,
)

WORTH_A_ROW = 0.01
"""Of the recorded peak; a setting that changes less of it changes nothing."""

RIGHT = frozenset({2, 3, 4, 5, 6})
"""The columns of figures."""

_RANGES = (
    ("peak_reserved", "peak", format_bytes),
    ("final_reserved", "end", format_bytes),
    ("peak_allocated", "allocated", format_bytes),
    ("retries", "retries", format_count),
)


@frozen
class Cell:
    """One figure: as it reads, and exact to the byte where it is one of bytes."""

    text: str
    bytes: int | None = None


@frozen
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


@frozen
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


def view(answer: WhatIf, per_pass: int | None = None) -> WhatIfView:
    """`answer` in words; what was a stranger's is clean, but not escaped for any format.

    Args:
        answer: of the replays.
        per_pass: bytes that every pass leaves behind, as `left_every_pass` tells.
    """
    each = [list(_notes(row, answer.self_check.reason)) for row in answer.rows]
    common = [note for note in (each[0] if each else ()) if all(note in notes for notes in each)]
    notes = list(dict.fromkeys(note for found in each for note in found if note not in common))
    rows = tuple(
        Row(
            clean(row.setting, 200),
            _cells(row, per_pass),
            tuple(sorted(notes.index(note) + 1 for note in found if note in notes)),
        )
        for row, found in zip(answer.rows, each, strict=True)
    )
    return WhatIfView(
        self_check_text(answer), rows, tuple(map(_sentence, notes)), " ".join(_on_all_rows(answer, common))
    )


def left_every_pass(device: DeviceFindings | None) -> int | None:
    """The bytes that every pass leaves behind, as the verdict tells them; None where it is not growth, or unknown."""
    if device is None or device.oom is None or device.oom.verdict.cause != "growth":
        return None
    for told in device.oom.verdict.headline:
        if each := told.values.get("per_pass"):
            return int(each)
        if every := told.values.get("every"):
            return int(told.values["each"]) // int(every)
    return None


def changing(answer: WhatIf) -> tuple[WhatIf, tuple[str, ...]]:
    """`answer` with the recorded row and those that change something; and the names of the rows that do not."""
    recorded = answer.row(RECORDED)
    if recorded is None or not answer.self_check.exact:
        return answer, ()
    rows = tuple(row for row in answer.rows if row is recorded or _changes(row, recorded))
    left_out = tuple(row.setting for row in answer.rows if row not in rows)
    return replace(answer, rows=rows), left_out


def _changes(row: WhatIfRow, recorded: WhatIfRow) -> bool:
    """Whether a row ends otherwise than the recorded one, or where neither fails, with another peak."""
    if row.oom != recorded.oom or any(row.served.values()):
        return True
    peak, before = row.peak_reserved, recorded.peak_reserved
    if row.oom or peak is None or before is None:
        return peak is None
    return abs(peak - before) >= WORTH_A_ROW * before


def split_rows(answer: WhatIf, shown: WhatIfView) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The recorded row with those that change something, and all others."""
    if not answer.rows:
        return (), ()
    kept = {row.setting for row in changing(answer)[0].rows}
    pairs = list(zip(answer.rows, shown.rows, strict=True))
    changed = tuple(words for number, (row, words) in enumerate(pairs) if number == 0 or row.setting in kept)
    return changed, tuple(words for _, words in pairs if words not in changed)


def _marked(row: Row) -> str:
    return f"{row.setting} [{', '.join(map(str, row.marks))}]" if row.marks else row.setting


def _cells(row: WhatIfRow, per_pass: int | None) -> tuple[Cell, ...]:
    return (
        Cell(outcome_text(row, per_pass)),
        Cell(headroom_text(row), row.headroom),
        Cell(_bytes(row.peak_reserved), row.peak_reserved),
        Cell(_bytes(row.final_reserved), row.final_reserved),
        Cell(UNKNOWN if row.retries is None else format_count(row.retries)),
        Cell(UNKNOWN if row.least_memory is None else format_limit(row.least_memory), row.least_memory),
    )


def _bytes(value: int | None) -> str:
    return UNKNOWN if value is None else format_bytes(value)


def _notes(row: WhatIfRow, said: Note | None) -> Iterator[str]:
    """What holds for a row: what the replays noted, but for the reason already `said`; and its ranges."""
    for note in row.notes:
        is_said = said is not None and note.values.get("why") == said
        yield clean(say(Note(note.code) if is_said else note), 400)
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
    yield from (clean(say(note), 400) for note in answer.notes)
    if common:
        yield f"All rows: {'; '.join(common)}."
    limits = list(dict.fromkeys(row.limit for row in answer.rows))
    if limits == [None]:
        yield "No limit is known, so none is applied."
    elif limits:
        yield f"Limit: {', '.join(map(_bytes, limits))}."
    used = [row.peak_allocated for row in answer.rows if row.peak_allocated is not None]
    if used:
        span = _span((min(used), max(used)))
        yield f"Peak allocated memory: {format_bytes(used[0]) if span is None else f'{span}, depending on the row'}."
    if answer.skipped:
        yield f"Skipped, time budget spent: {clean(', '.join(answer.skipped), 400)}."


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}."
