"""Let go of what an earlier training has left."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.attribution.held_blocks import keeper_of
from oomscope.analysis.passes.ended_training import EndedTraining
from oomscope.analysis.passes.former_model import FormerModel
from oomscope.analysis.passes.replaced_optimizer import ReplacedOptimizer
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.work_before import work_since_rows
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_ended_training"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the trace shows that a loop trained, ended, and left gradients and states."""
    ended = circumstances.piled.left
    if not isinstance(ended, (FormerModel, ReplacedOptimizer, EndedTraining)):
        return
    study, work = circumstances.study, work_since_rows(circumstances, ended.rows)
    place = study.loops.location(ended.run) if isinstance(ended, EndedTraining) else ended.place
    keeper = keeper_of(study, ended.rows)
    values = {"place": place, "bytes": ended.bytes, "before": work, "holder": keeper}
    at = work.at if work is not None else place if keeper is None else None  # what keeps it is not kept by the loop
    yield Advice(_slug(ended), values, ended.bytes, enough_by_sum(circumstances, ended.bytes), at=at)


def _slug(ended: FormerModel | ReplacedOptimizer | EndedTraining) -> str:
    if isinstance(ended, FormerModel):
        return f"{SLUG}.model"
    return f"{SLUG}.optimizer" if isinstance(ended, ReplacedOptimizer) else SLUG
