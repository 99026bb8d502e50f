"""Break the reference cycle, or let the garbage collector find it."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.work_before import work_before
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "collect_garbage"
LEAST_PASSES = 2
"""Finished passes that have made such cycles: one may be what had ended before."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where unreachable cycles keep memory."""
    for one in circumstances.piled.debris:
        if one.kind == "cycle":
            # What passes go on making has to go with each of them.
            work = work_before(circumstances, one) if one.passes < LEAST_PASSES else None
            values = {"holder": one.holder, "before": work, "goes_on": one.passes >= LEAST_PASSES}
            at = one.at if work is None else work.at
            yield Advice(SLUG, values, one.retained, enough_by_sum(circumstances, one.retained), at=at)
