"""Call backward on each part of a loss that is summed over several passes: its graphs go one by one."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.kept_values import kept_values
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice, Suspect

SLUG = "backward_each_pass"

LEAST_PASSES = 2
"""Finished ones; the graph of a single pass is what its backward needs."""
WORTH_ADVISING = 0.25
"""Of the allocated bytes."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where one number, or a list, keeps the graphs of several passes, as losses do that wait for their backward."""
    for keeper in circumstances.suspects[:1]:
        if (passes := _gathered(circumstances, keeper)) >= LEAST_PASSES:
            values = {"holder": keeper.holder, "passes": passes, "bytes": keeper.retained}
            yield Advice(SLUG, values, keeper.retained, enough_by_sum(circumstances, keeper.retained), at=keeper.at)
            return
        if keeper.kind != "graph" or keeper.passes < LEAST_PASSES:
            return
        saves, allocated = keeper.earlier_bytes, max(circumstances.request.totals.allocated, 1)
        if saves < WORTH_ADVISING * allocated:
            return
        if kept_values(circumstances.study, circumstances.request.entry, keeper.holder).numbers:
            values = {"holder": keeper.holder, "passes": keeper.passes, "bytes": saves}
            yield Advice(SLUG, values, saves, enough_by_sum(circumstances, saves), at=keeper.at)


def _gathered(circumstances: Circumstances, keeper: Suspect) -> int:
    """How many finished passes have put the graphs into a list that one backward after their loop is to go through."""
    found = circumstances.failing_pass
    if found is None or found.gathers_for is None or keeper.kind != "list" or not keeper.keeps_graph:
        return 0
    is_much = keeper.retained >= WORTH_ADVISING * max(circumstances.request.totals.allocated, 1)
    return found.finished if is_much else 0
