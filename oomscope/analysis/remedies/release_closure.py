"""Take back a function that a call has left behind: it keeps the variables of that call."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.work_before import work_before
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_closure"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where such a function keeps what its call had made."""
    for one in circumstances.piled.debris:
        if one.is_ended_closure:
            enough, work = enough_by_sum(circumstances, one.retained), work_before(circumstances, one)
            at = one.at if work is None else work.at
            yield Advice(SLUG, {"holder": one.holder, "before": work}, one.retained, enough, at=at)
