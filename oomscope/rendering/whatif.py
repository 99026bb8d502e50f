"""What-if answers as text: for the terminal, as Markdown, as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from oomscope.analysis.whatif.records import WhatIf, WhatIfRow
from oomscope.analysis.whatif.words import memory
from oomscope.units import GIB, format_count, plural

SCHEMA_VERSION = 1
UNKNOWN = "–"

CONDITIONS = (
    "Assumes the same program: the same requests in the same order, freed at the same points. What a program does after"
    " an out-of-memory error that it caught, frees whose moment the GPU decides (record_stream), calls of empty_cache"
    " that freed nothing in the recorded run, and the memory that CUDA and other processes take are not replayed."
)
"""What every answer assumes."""

_HEADINGS = ("setting", "peak", "end", "in use", "retries", "outcome", "headroom", "least")
_EXPLAINED = (
    "peak, end: reserved memory at its most and at the end; in use: the most allocated at once; retries: how often all"
    " cached blocks were given back for one request; headroom: the limit less the peak, or what the failing request"
    " lacked; least: the least memory on which the run lives."
)
_LEFT = (0, 5)
_WIDTH = 110


def to_json(answer: WhatIf) -> str:
    """The document that ``oomscope whatif --format json`` prints."""
    return json.dumps(as_document(answer), indent=2) + "\n"


def as_document(answer: WhatIf) -> dict[str, Any]:
    """The answer as plain containers."""
    check = answer.self_check
    return {
        "schema_version": SCHEMA_VERSION,
        "device": answer.device,
        "self_check": {
            "addresses": check.addresses,
            "segment_events": check.segment_events,
            "mismatches": check.mismatches,
            "first_mismatch": check.first_mismatch,
            "reason": check.reason,
        },
        "whatif": [row_as_dict(row) for row in answer.rows],
        "skipped": list(answer.skipped),
        "conditions": CONDITIONS,
    }


def row_as_dict(row: WhatIfRow) -> dict[str, Any]:
    """One row as plain containers; unknown values are None."""
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    values["range"] = {name: list(span) for name, span in row.range.items()}
    return values


def to_text(answer: WhatIf) -> str:
    """The answer for a terminal."""
    table = [_HEADINGS, *(_cells(row) for row in answer.rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [*_wrapped(f"What if, device {answer.device}. {self_check_text(answer)}"), ""]
    lines += [_aligned(row, widths) for row in table]
    for paragraph in (_EXPLAINED, *_notes(answer), CONDITIONS):
        lines += ["", *_wrapped(paragraph)]
    return "\n".join(lines) + "\n"


def _wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if at in _LEFT else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def to_markdown(answer: WhatIf) -> str:
    """The answer as GitHub-flavoured Markdown."""
    lines = [f"### What if (device {answer.device})", "", self_check_text(answer), ""]
    lines.append("| " + " | ".join(_HEADINGS) + " |")
    lines.append("|" + "|".join(" --- " if at in _LEFT else " ---: " for at in range(len(_HEADINGS))) + "|")
    for row in answer.rows:
        setting, *rest = _cells(row)
        lines.append("| " + " | ".join([f"`{setting}`".replace("|", r"\|"), *rest]) + " |")
    lines += ["", _EXPLAINED, "", *(f"- {note}" for note in _notes(answer)), "", CONDITIONS]
    return "\n".join(lines) + "\n"


def self_check_text(answer: WhatIf) -> str:
    """One sentence: whether the replay can be trusted."""
    check = answer.self_check
    if not check.exact:
        return f"Self-check failed: {check.reason}."
    compared = f"all {format_count(check.addresses)} addresses and {plural(check.segment_events, 'segment event')}"
    sentence = f"Self-check: replaying the recorded setting gives {compared} of the recording."
    return sentence if check.reason is None else f"{sentence} But {check.reason}."


def outcome_text(row: WhatIfRow) -> str:
    """``lives``, ``OOM after 12,976 allocs``, or that neither is certain."""
    if row.oom is None:
        return UNKNOWN if row.peak_reserved is None else "not certain"
    if not row.oom:
        return "lives"
    return f"OOM after {plural(row.failed_allocation or 0, 'alloc')}"


def _cells(row: WhatIfRow) -> tuple[str, ...]:
    return (
        row.setting,
        _span_text(row, "peak_reserved"),
        _span_text(row, "final_reserved"),
        _bytes(row.peak_allocated),
        UNKNOWN if row.retries is None else format_count(row.retries),
        outcome_text(row),
        _bytes(row.headroom),
        _bytes(row.least_memory),
    )


def _span_text(row: WhatIfRow, name: str) -> str:
    """A figure, with its range where orders of addresses disagree."""
    value: int | None = getattr(row, name)
    low, high = row.range.get(name, (0, 0))
    if value is None or memory(low) == memory(high):
        return _bytes(value)
    if low >= GIB:
        return f"{memory(value)} ({low / GIB:.2f}–{high / GIB:.2f})"
    return f"{memory(value)} ({memory(low)}–{memory(high)})"


def _bytes(value: int | None) -> str:
    return UNKNOWN if value is None else memory(value)


def _notes(answer: WhatIf) -> list[str]:
    """What holds for all rows, then what holds for some of them."""
    rows: dict[str, list[str]] = {}
    for row in answer.rows:
        for note in filter(None, row.note.split("; ")):
            rows.setdefault(note, []).append(row.setting)
    common = [note for note, settings in rows.items() if len(settings) == len(answer.rows)]
    lines = [f"All figures: {'; '.join(common)}. {_limit_text(answer)}"]
    alike: dict[tuple[str, ...], list[str]] = {}
    for note, settings in rows.items():
        if note not in common:
            alike.setdefault(tuple(settings), []).append(note)
    lines += [f"{' · '.join(settings)}: {'; '.join(notes)}." for settings, notes in alike.items()]
    if answer.skipped:
        lines.append(f"Left out for want of time: {', '.join(answer.skipped)}.")
    return lines


def _limit_text(answer: WhatIf) -> str:
    limits = list(dict.fromkeys(row.limit for row in answer.rows))
    if limits == [None]:
        return "No limit is known, so none is applied; a card ends sooner or later."
    return f"Limit: {', '.join(_bytes(limit) for limit in limits)}."
