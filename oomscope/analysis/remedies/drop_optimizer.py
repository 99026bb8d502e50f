"""Let go of an optimizer whose model is gone: it alone keeps the parameters, their gradients and its states."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "drop_optimizer"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where an optimizer holds parameters that no module holds any more."""
    for one in circumstances.piled.debris:
        if one.kind == "optimizer":
            yield Advice(
                SLUG, {"holder": one.holder}, one.retained, enough_by_sum(circumstances, one.retained), at=one.at
            )
