"""Raise the cap of the process, where the card has room."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.verdict.shortage import MARGIN
from oomscope.analysis.verdict.source_lines import only_line
from oomscope.analysis.whatif.records import RECORDED
from oomscope.model import Action
from oomscope.model.storing import sets_a_cap

SLUG = "raise_cap"

PASSES_OF_ROOM = 10
"""Where memory grows, or each pass needs more than the last, a cap that lasts for fewer more passes is no help."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where a cap refused the request and the card had what was missing."""
    case, free = circumstances.shortage, circumstances.request.device_free
    if not case.cap_binds or free is None:
        return
    needed, lasting = _needed(circumstances), _lasting(circumstances)
    # Room for what any allocator leaves in holes, and for growth.
    least = int(needed * (1 + MARGIN)) + PASSES_OF_ROOM * lasting
    more = least - case.limit.low
    if not 0 < more <= free:
        return
    values = {
        "least": least,
        "needed": needed,
        "cap": case.cap,
        "low": case.limit.low,
        "free": free,
        "fraction": None if not case.total else -(-least * 10_000 // case.total) / 10_000,
        "grows": circumstances.piled.per_pass,
        "rise": lasting if lasting and not circumstances.piled.per_pass else None,
        "passes": PASSES_OF_ROOM if lasting else None,
        "whole_pass": circumstances.needs.as_larger is not None,
    }
    set_at = only_line(circumstances.sources, sets_a_cap)
    yield Advice(SLUG, {**values, "set_at": set_at}, None, True, at=set_at)


def _lasting(circumstances: Circumstances) -> int:
    """By how many bytes each pass to come needs more; 0 where the input grows, for nobody knows how far."""
    failing = circumstances.failing_pass
    if failing is not None and failing.is_larger and not circumstances.piled.per_pass:
        return 0
    return max(circumstances.piled.per_pass or 0, circumstances.needs.rise)


def _needed(circumstances: Circumstances) -> int:
    """The least cap under which the request is served, and what is known to follow it."""
    case = circumstances.shortage
    needed = max(_replayed(circumstances), case.reserved + case.size, case.limit.low)
    there, needs = circumstances.needs.state_to_come
    needed += max(needs - there - case.size, (circumstances.needs.still_to_come or 0) - case.size, 0)
    return max(needed, circumstances.needs.next_step or 0, circumstances.needs.as_larger or 0)


def _replayed(circumstances: Circumstances) -> int:
    """The least memory by replay; 0 where it is not known, or for an earlier request that the program did without.

    A library tries one plan after another with ever smaller workspaces, and is refused until one fits.
    """
    row = circumstances.whatif.row(RECORDED) if circumstances.whatif else None
    if row is None:
        return 0
    before = np.searchsorted(circumstances.study.history.trace.entries(Action.ALLOC), circumstances.request.entry)
    return row.least_memory or 0 if row.failed_allocation == int(before) else 0
