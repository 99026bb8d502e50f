"""Let go of what an earlier training has left."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.passes.ended_training import EndedTraining
from oomscope.analysis.passes.former_model import FormerModel
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_ended_training"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the trace shows that a loop trained, ended, and left gradients and states."""
    ended = circumstances.piled.left
    if isinstance(ended, FormerModel):
        values = {"place": ended.place, "bytes": ended.bytes}
        yield Advice(f"{SLUG}.model", values, ended.bytes, enough_by_sum(circumstances, ended.bytes), at=ended.place)
    if isinstance(ended, EndedTraining):
        loop = circumstances.study.loops.location(ended.run)
        values = {"loop": loop, "bytes": ended.bytes}
        yield Advice(SLUG, values, ended.bytes, enough_by_sum(circumstances, ended.bytes), at=loop)
