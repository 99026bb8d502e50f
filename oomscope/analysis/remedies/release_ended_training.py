"""Let go of what an earlier training has left."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.attribution.held_blocks import keeper_of
from oomscope.analysis.passes.ended_training import EndedTraining
from oomscope.analysis.passes.former_model import FormerModel
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.work_before import work_since_rows
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_ended_training"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the trace shows that a loop trained, ended, and left gradients and states."""
    ended = circumstances.piled.left
    if not isinstance(ended, (FormerModel, EndedTraining)):
        return
    holder = keeper_of(circumstances.study, ended.rows)
    if isinstance(ended, FormerModel):
        work = work_since_rows(circumstances, ended.rows)
        values = {"place": ended.place, "bytes": ended.bytes, "before": work, "holder": holder}
        at = ended.place if work is None else work.at
        yield Advice(f"{SLUG}.model", values, ended.bytes, enough_by_sum(circumstances, ended.bytes), at=at)
    else:
        loop = circumstances.study.loops.location(ended.run)
        work = work_since_rows(circumstances, ended.rows)
        values = {"loop": loop, "bytes": ended.bytes, "before": work, "holder": holder}
        at = loop if work is None else work.at
        yield Advice(SLUG, values, ended.bytes, enough_by_sum(circumstances, ended.bytes), at=at)
