"""Break the reference cycle, or let the garbage collector find it."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.passes.work_underway import WorkUnderway, goes_on_making, work_since
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice, Suspect
from oomscope.analysis.verdict.suspects import held_rows, never_collected

SLUG = "collect_garbage"
LEAST_PASSES = 2
"""Finished passes that have made such cycles: one may be what had ended before."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where unreachable cycles keep memory."""
    piling = circumstances.piled.holder
    if piling is not None and never_collected(piling):
        values = {"holder": piling.holder, "bytes": piling.retained}
        yield Advice(f"{SLUG}.node", values, piling.retained, enough_by_sum(circumstances, piling.retained))
    for one in circumstances.piled.debris:
        if one.kind == "cycle":
            work = _work(circumstances, one)
            values = {"holder": one.holder, "before": work, "goes_on": work is None and one.passes >= LEAST_PASSES}
            at = one.at if work is None else work.at
            yield Advice(SLUG, values, one.retained, enough_by_sum(circumstances, one.retained), at=at)


def _work(circumstances: Circumstances, cycle: Suspect) -> WorkUnderway | None:
    """What is underway since the calls ended that made the cycle; None where passes of a loop go on making such.

    Of a call that is made again and again, a part of the cycle is as good a sign as most of it: it was made by the last
    one, and is garbage.
    """
    study, entry = circumstances.study, circumstances.request.entry
    if study is None:
        return None
    rows = held_rows(study, entry, cycle.holder)
    work = work_since(study, entry, rows, least=0) if len(rows) else None
    makes_more = work is not None and cycle.passes >= LEAST_PASSES and goes_on_making(study, entry, work, rows)
    return None if makes_more else work
