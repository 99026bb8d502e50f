"""Let go of what an earlier training has left."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.passes.ended_training import EndedTraining
from oomscope.analysis.passes.former_model import FormerModel
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.work_before import work_since_rows
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.verdict.suspects import reaching

SLUG = "release_ended_training"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the trace shows that a loop trained, ended, and left gradients and states."""
    ended = circumstances.piled.left
    keeper = None if ended is None else reaching(circumstances.suspects, ended.bytes)
    holder = None if keeper is None else keeper.holder
    if isinstance(ended, FormerModel):
        work = work_since_rows(circumstances, ended.rows)
        values = {"place": ended.place, "bytes": ended.bytes, "before": work, "holder": holder}
        at = ended.place if work is None else work.at
        yield Advice(f"{SLUG}.model", values, ended.bytes, enough_by_sum(circumstances, ended.bytes), at=at)
    if isinstance(ended, EndedTraining):
        loop = circumstances.study.loops.location(ended.run)
        work = work_since_rows(circumstances, ended.rows)
        values = {"loop": loop, "bytes": ended.bytes, "before": work, "holder": holder}
        at = loop if work is None else work.at
        yield Advice(SLUG, values, ended.bytes, enough_by_sum(circumstances, ended.bytes), at=at)
