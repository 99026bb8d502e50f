"""Batches no larger than those that fitted."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from oomscope.analysis.passes.records import LargerInput
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "bound_batch"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where passes had fitted until one took in more, and nothing else has grown since."""
    found = circumstances.failing_pass
    if found is None or not found.completed or not found.is_larger:
        return
    place = found.began_at or found.grew_at
    if place is None or circumstances.growth or circumstances.piled.holder is not None:
        return
    own = found.input if found.input is not None and found.input.is_own else None
    values = {
        "place": place,
        "passes": found.completed,
        "stairs": found.staircase is not None,
        "variable": own.variable if own else None,
        "share": _share(circumstances.needs.share_that_fits, own),
        "elements": prod(own.shape) if own else None,
        "sides": len(own.shape) if own else None,
    }
    yield Advice(SLUG, values, None, True, at=place)


def _share(fits: float | None, own: LargerInput | None) -> float | None:
    """The share of the input that fits: no less than what a pass before had taken in, and fitted."""
    return fits if fits is None or own is None else max(fits, 1 / own.ratio)
