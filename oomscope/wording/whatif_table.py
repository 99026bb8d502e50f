"""The table of replays under other settings: its headings, what they mean, and its cells."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.analysis.whatif.records import WhatIf, WhatIfRow
from oomscope.units import format_bytes, format_count, plural
from oomscope.wording.clean import clean
from oomscope.wording.sentences import say

UNKNOWN = "–"

TITLE = "What other settings would have done"
EXPLAINED_BY = "The command oomscope whatif shows every row, and says what the columns mean and the answers assume."
NOTHING_CHANGES = "No setting that was replayed changes the outcome."
HEADINGS = ("setting", "outcome", "room left", "peak", "at the end", "retries", "needed")

EXPLAINED = (
    "Outcome: every request of the recording is served (that of a run that failed ends there: what it would have asked "
    "for next is not known), or one fails after so many allocations. Room left: the limit minus the peak, or by how "
    "much the failed request was short. Peak, at the end: reserved memory. Retries: how often all cached blocks were "
    "released to serve one request, which costs time. Needed: the smallest limit under which every request is served, "
    "rounded up."
)
"""What the headings mean."""

CONDITIONS = (
    "Valid for the same program up to the last recorded entry: the same requests in the same order, freed at the same "
    "points. Where the order of segment addresses matters, notes give the number of orders tried and the range of "
    "results; an outcome is stated only where all orders agree, under every limit that the recording allows. Not "
    "modelled: what a program does after it caught an out-of-memory error, or because of how much memory is free; "
    "frees whose time the GPU decides (record_stream); calls of empty_cache that freed nothing in the recorded run; "
    "memory taken by CUDA and by other processes."
)
"""What every answer assumes."""


def unchanged_text(settings: Sequence[str]) -> str:
    """Which settings were replayed and change nothing; empty where there are none."""
    return f"Replayed as well, and no better: {clean('; '.join(settings), 600)}." if settings else ""


def self_check_text(answer: WhatIf) -> str:
    """One sentence: whether the replay can be trusted."""
    check = answer.self_check
    reason = None if check.reason is None else say(check.reason)
    if not check.exact:
        return f"Self-check failed: {reason}."
    compared = f"all {format_count(check.addresses)} addresses and {plural(check.segment_events, 'segment event')}"
    passed = f"Self-check passed: replaying the recorded setting reproduces {compared} of the recording."
    return passed if reason is None else f"{passed} However, {reason}."


def outcome_text(row: WhatIfRow, per_pass: int | None = None) -> str:
    """``no failure``, ``fails after 12,976 allocations``, or that neither is certain.

    Args:
        row: of a setting.
        per_pass: bytes that every pass leaves behind, where memory grows: then serving what was recorded is not the
            end of it.
    """
    if row.oom is None:
        return UNKNOWN if row.peak_reserved is None else "not certain"
    if row.oom:
        return (
            "fails" if row.failed_allocation is None else f"fails after {plural(row.failed_allocation, 'allocation')}"
        )
    if not row.served:
        return "no failure"
    serves = "serves this request" if len(row.served) == 1 else "serves every recorded request"
    return f"{serves}; {_again(row.headroom, per_pass)}" if per_pass else serves


def _again(headroom: int | None, per_pass: int) -> str:
    """When a run that grows fails again: what is to spare lasts for so many passes more."""
    if headroom is None:
        return "the growth goes on"
    passes = max(headroom, 0) // per_pass
    return f"fails again after about {plural(passes, 'pass', 'passes')}" if passes else "fails again in the next pass"


def headroom_text(row: WhatIfRow) -> str:
    """``110 MiB``, or ``1.71 GiB short``."""
    if row.headroom is None:
        return UNKNOWN
    return f"{format_bytes(-row.headroom)} short" if row.headroom < 0 else format_bytes(row.headroom)


def notes_text(row: WhatIfRow) -> str:
    """All notes on `row` as one text."""
    return "; ".join(map(say, row.notes))
