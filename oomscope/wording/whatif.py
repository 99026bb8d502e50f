"""Replays under other settings: the table's words, and the notes on its rows, which are read as ``a; b; c``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.analysis.whatif.records import WhatIf, WhatIfRow
from oomscope.units import format_bytes, format_count, plural
from oomscope.wording import Sentence, say

UNKNOWN = "–"

TITLE = "What other settings would have done"
HEADINGS = ("setting", "outcome", "headroom", "peak", "end", "retries", "minimum")

EXPLAINED = (
    "Outcome: the run survives, or a request fails after so many allocations. Headroom: the limit minus the peak, or "
    "by how much the failed request was short. Peak, end: reserved memory at its highest and at the end. Retries: how "
    "often all cached blocks were released to serve one request, which costs time. Minimum: the smallest limit under "
    "which the run survives, rounded up."
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


def self_check_text(answer: WhatIf) -> str:
    """One sentence: whether the replay can be trusted."""
    check = answer.self_check
    reason = None if check.reason is None else say(check.reason)
    if not check.exact:
        return f"Self-check failed: {reason}."
    compared = f"all {format_count(check.addresses)} addresses and {plural(check.segment_events, 'segment event')}"
    passed = f"Self-check passed: replaying the recorded setting reproduces {compared} of the recording."
    return passed if reason is None else f"{passed} However, {reason}."


def outcome_text(row: WhatIfRow) -> str:
    """``survives``, ``fails after 12,976 allocations``, or that neither is certain."""
    if row.oom is None:
        return UNKNOWN if row.peak_reserved is None else "not certain"
    if not row.oom:
        return "survives"
    return "fails" if row.failed_allocation is None else f"fails after {plural(row.failed_allocation, 'allocation')}"


def headroom_text(row: WhatIfRow) -> str:
    """``110 MiB``, or ``1.71 GiB short``."""
    if row.headroom is None:
        return UNKNOWN
    return f"{format_bytes(-row.headroom)} short" if row.headroom < 0 else format_bytes(row.headroom)


def notes_text(row: WhatIfRow) -> str:
    """All notes on `row` as one text."""
    return "; ".join(map(say, row.notes))


def _with_reason(what: str) -> Sentence:
    def said(values: Mapping[str, Any]) -> str:
        return what if values.get("why") is None else f"{what}: {say(values['why'])}"

    return said


_KNOWN_CAP = "the recorded cap is known only to lie between {low:bytes} and {high:bytes}"
_LATE = "the recording does not begin with the first allocation"

WHATIF: dict[str, Sentence] = {
    "whatif.up_to_the_last_entry": "up to the last recorded entry",
    "whatif.recorded_window": "from the first recorded entry to the last",
    "whatif.estimate": "an estimate: the program is not the recorded one",
    "whatif.rest_as_recorded": "other settings as recorded ({conf})",
    "whatif.needs_newer_torch": "{option} needs torch {torch}",
    "whatif.not_answered": _with_reason("not answered"),
    "whatif.from_the_trace": _with_reason("from the trace, not replayed"),
    # Changes of the program.
    "whatif.scaled": "{count:n allocation} of {site} scaled by {factor}",
    "whatif.freed_each_step": "{count:n allocation} of {site} freed at the end of their step",
    "whatif.left_out": "{count:n allocation} of {site} left out",
    "whatif.nothing_left": "nothing is left to replay",
    "whatif.steps_unknown": "the steps of the program are not known",
    "whatif.grows": (
        "Memory grows by {bytes_per_step:bytes} per step in this recording: more memory only delays the failure."
    ),
    # Limits.
    "whatif.any_cap_gives_the_same": f"{_KNOWN_CAP}; every cap in that range gives the same result",
    "whatif.lowest_cap_taken": f"{_KNOWN_CAP}; {{low:bytes}} is used",
    "whatif.depends_on_the_cap": "fails at {fails:bytes}, survives at {survives:bytes}",
    "whatif.limit_below_reserved": "{bytes:bytes} was reserved when the recording began, more than the limit",
    "whatif.collection_needs_a_cap": "garbage_collection_threshold has no effect without a cap (--limit)",
    "whatif.whole_card": "the whole card counts as free, although the CUDA context and libraries take about 0.5 GiB",
    "whatif.fraction_of_unknown_card": (
        "per_process_memory_fraction has no effect here: the size of the card is not known"
    ),
    # Orders of segment addresses.
    "whatif.order_matters": "the order of segment addresses matters: {orders:n order} tried",
    "whatif.one_order": "one order of addresses tried",
    "whatif.orders_cut_short": "only {orders:n order} of addresses tried: time budget spent",
    "whatif.fails_in_some_orders": "fails in {failed} of {orders:n order} of addresses",
    # The minimum.
    "whatif.least_memory_unknown": "minimum unknown: what was reserved before the recording counts",
    "whatif.least_memory_not_searched": "minimum not searched for: time budget spent",
    "whatif.least_memory_here_only": (
        "minimum verified for this limit only: under garbage collection every limit behaves differently"
    ),
    "whatif.least_memory_proven_to": "minimum verified for limits up to {limit:bytes} only",
    "whatif.survives_with_less": (
        "also survives with {bytes:bytes} less than the minimum, but not with every limit in between"
    ),
    "whatif.workspace": (
        "the request that fails is freed before anything else is requested, as a workspace is: libraries such as cuDNN "
        "then use less, and the run may survive"
    ),
    "whatif.less_workspace": "below the minimum a workspace would not fit, and cuDNN may use a smaller one",
    # What the replay of a recording can answer.
    "whatif.no_allocation": "the trace has no allocation, so there is nothing to replay",
    "whatif.replay_departs": (
        "the replay of the recorded setting departs from the recording at entry {entry:count} "
        "({mismatches:n mismatch/mismatches} in {addresses:n address/addresses} and {segment_events:n segment event}): "
        "the recording allocator is not the one modelled here, or entries are missing"
    ),
    "whatif.late_recording": (
        f"{_LATE}; only the recorded setting, with or without calls of empty_cache, and expandable segments are "
        "answered, for the recorded window"
    ),
    "whatif.late_layout": f"{_LATE}, and the layout it found was made under the recorded setting",
    "whatif.late_laid_out_anew": (
        f"{_LATE}: the blocks it found are laid out anew in address order, and a peak before the recording is not seen"
    ),
}
