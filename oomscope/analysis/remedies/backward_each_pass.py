"""Call backward on each part of a loss that is summed over several passes: its graphs go one by one."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.kept_values import kept_values
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "backward_each_pass"

LEAST_PASSES = 2
"""Finished ones; the graph of a single pass is what its backward needs."""
WORTH_ADVISING = 0.25
"""Of the allocated bytes."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where one number keeps the graphs of several passes, as a loss does that waits for its backward."""
    for keeper in circumstances.suspects[:1]:
        if keeper.kind != "graph" or keeper.passes < LEAST_PASSES:
            return
        saves, allocated = keeper.earlier_bytes, max(circumstances.request.totals.allocated, 1)
        if saves < WORTH_ADVISING * allocated:
            return
        if kept_values(circumstances.study, circumstances.request.entry, keeper.holder).numbers:
            values = {"holder": keeper.holder, "passes": keeper.passes, "bytes": saves}
            yield Advice(SLUG, values, saves, enough_by_sum(circumstances, saves), at=keeper.at)
