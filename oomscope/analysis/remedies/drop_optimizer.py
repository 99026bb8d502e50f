"""Let go of an optimizer, or of those of its parameters, whose model is gone: it alone keeps them with their states."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.work_before import work_before
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "drop_optimizer"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where an optimizer holds parameters that no module holds any more: one model's, or more with each pass."""
    kept = circumstances.piled.holder
    if kept is not None and kept.kind == "optimizer":
        enough = enough_by_sum(circumstances, kept.earlier_bytes)
        yield Advice(f"{SLUG}.parameters", {"holder": kept.holder}, kept.earlier_bytes, enough, at=kept.at)
    for one in circumstances.piled.debris:
        if one.kind == "optimizer":
            work = work_before(circumstances, one)
            values = {"holder": one.holder, "before": work}
            at = one.at if work is None else work.at
            yield Advice(SLUG, values, one.retained, enough_by_sum(circumstances, one.retained), at=at)
