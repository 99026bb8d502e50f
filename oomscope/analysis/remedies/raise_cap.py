"""Raise the cap of the process, where the card has room."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.verdict.shortage import MARGIN
from oomscope.analysis.whatif.records import RECORDED

SLUG = "raise_cap"

PASSES_OF_ROOM = 10
"""Where memory grows, a cap that lasts for fewer more passes is no help."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where a cap refused the request and the card had what was missing."""
    case, free = circumstances.shortage, circumstances.request.device_free
    if not case.cap_binds or free is None:
        return
    least = _least(circumstances)
    more = least - case.limit.low
    if not 0 < more <= free:
        return
    values = {
        "least": least,
        "cap": case.cap,
        "low": case.limit.low,
        "free": free,
        "fraction": None if not case.total else -(-least * 1000 // case.total) / 1000,
        "grows": circumstances.piled.per_pass,
        "passes": PASSES_OF_ROOM if circumstances.piled.per_pass else None,
    }
    yield Advice(SLUG, values, None, True)


def _least(circumstances: Circumstances) -> int:
    """The cap under which the request is served, with room for what any allocator leaves in holes, and for growth."""
    case, answer = circumstances.shortage, circumstances.whatif
    row = answer.row(RECORDED) if answer else None
    known = row.least_memory if row is not None and row.least_memory is not None else None
    needed = max(known or 0, case.reserved + case.size, case.limit.low)
    there, needs = circumstances.state_to_come
    needed += max(needs - there - case.size, (circumstances.still_to_come or 0) - case.size, 0)
    grows = PASSES_OF_ROOM * (circumstances.piled.per_pass or 0)
    return int(needed * (1 + MARGIN)) + grows
