"""Fewer calls at once."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.calls import bytes_of_calls
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.clauses import WORTH_TELLING
from oomscope.analysis.verdict.records import Advice

SLUG = "limit_calls_in_progress"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where many calls of one function were underway at the same time and hold much: half of them."""
    for one in circumstances.in_progress[:1]:
        most = max(one.calls // 2, 1)
        held = bytes_of_calls(circumstances.study, circumstances.live, one)
        if held < WORTH_TELLING * circumstances.request.totals.allocated:
            continue
        saves = held * (one.calls - most) // one.calls
        values = {"calls": one.calls, "most": most, "function": one.function, "bytes": held}
        yield Advice(SLUG, values, saves or None, enough_by_sum(circumstances, saves) if saves else None)
