"""An optimizer without temporaries as large as the parameters."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.labels.unfused import FUSED, unfused_optimizer
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.shrink_driver import WORTH_ADVISING
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "fused_optimizer"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the temporaries of an optimizer's step hold much, or the request that failed is for one."""
    found = next((one for one in circumstances.drivers if one.slug == "optimizer_temporaries"), None)
    optimizer = _optimizer(circumstances)
    request = circumstances.request
    saves = (found.bytes if found else 0) + (request.size if optimizer else 0)
    if saves <= WORTH_ADVISING * max(request.totals.allocated, 1):
        return
    place = found.site if found else request.caller or request.site
    code = f"{SLUG}.foreach" if optimizer is not None and optimizer not in FUSED else SLUG
    yield Advice(code, {"bytes": saves, "place": place}, saves, enough_by_sum(circumstances, saves), at=place)


def _optimizer(circumstances: Circumstances) -> str | None:
    """The optimizer whose update asked for the memory, not for its state but for a temporary of its own."""
    study = circumstances.study
    if study is None or circumstances.asked.phase != "optimizer":
        return None
    return unfused_optimizer(study.snapshot, int(study.history.trace.stack[circumstances.request.entry]))
