"""A model that takes no part waits on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.shrink_driver import WORTH_ADVISING
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "move_idle_model"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """The largest of the models that wait while another one runs, or is trained."""
    for one in circumstances.idle_models[:1]:
        if one.bytes > WORTH_ADVISING * circumstances.request.totals.allocated:
            code = f"{SLUG}.untrained" if one.untrained else SLUG
            yield Advice(code, {"holder": one.holder}, one.bytes, enough_by_sum(circumstances, one.bytes))
