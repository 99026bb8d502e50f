"""Smaller micro-batches, with gradients accumulated over them where the program trains."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum, served_if_scaled
from oomscope.analysis.remedies.of_the_batch import asks_for_the_batch, live_bytes, of_the_batch
from oomscope.analysis.remedies.shrink_driver import WORTH_ADVISING
from oomscope.analysis.verdict.causes.capacity import fills_an_object
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.verdict.shortage import MARGIN

SLUG = "smaller_batch"

DIVISORS = (2, 4, 8, 16)
"""A batch is halved first; below a sixteenth it is another program."""
OF_ONE_MUCH_LARGER = (2, 4, 8, 16, 32, 64, 128)
"""Where smaller ones have fitted, it is the same program all the same."""
MOST = 0.5
"""Of the recorded bytes; the rest may be of images stacked otherwise, or masks."""
_OF_THE_MODEL = ("parameter", "gradient", "optimizer_state", "buffer")


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """The largest part of the batch that fits."""
    there = live_bytes(circumstances)
    request = circumstances.request.size if asks_for_the_batch(circumstances) else 0
    if circumstances.growth or circumstances.piled.holder is not None or fills_an_object(circumstances):
        return  # what piles up does so with any batch
    if there + request <= WORTH_ADVISING * max(circumstances.request.totals.allocated, 1):
        return
    divisor, enough = _divisor(circumstances, there, request)
    saves = (there + request) * (divisor - 1) // divisor
    code = f"{SLUG}.training" if circumstances.trains else SLUG
    samples = None if _holds(circumstances, divisor) else divisor
    whole = bool(enough) and circumstances.needs.as_larger is not None
    values = {"divisor": divisor, "bytes": there or None, "samples": samples, "whole_pass": whole}
    values["accumulates"] = circumstances.loop.trains_within and not circumstances.loop.optimizes_within
    yield Advice(code, values, saves, enough)


def _holds(circumstances: Circumstances, samples: int) -> bool:
    """Whether a batch is known to hold so many: by the first dimension of most of what a pass makes, by bytes.

    Only a recording knows shapes; a bare snapshot never shows that there is more than one sample to divide.
    """
    tensors = circumstances.study.snapshot.recorded.tensors_on(circumstances.study.index)
    made = [one for one in tensors if one.category not in _OF_THE_MODEL and len(one.shape or ()) > 1]
    divisible = sum(one.bytes or 0 for one in made if (one.shape or (0,))[0] >= samples)
    return divisible > MOST * sum(one.bytes or 0 for one in made)


def _divisor(circumstances: Circumstances, there: int, request: int) -> tuple[int, bool | None]:
    """By what to divide the batch, and whether that is enough; the least that is, by replay or by sums.

    A pass that is larger than those that fitted needs its whole: the request that failed may have come early in it.
    """
    whole, low = circumstances.needs.as_larger, circumstances.request.limit.low
    if whole is not None:
        fixed = circumstances.request.totals.active - there
        fits = (one for one in OF_ONE_MUCH_LARGER if (fixed + (whole - fixed) / one) * (1 + MARGIN) <= low)
        divisor = next(fits, None)
        return (DIVISORS[0], False) if divisor is None else (divisor, True)
    rows = of_the_batch(circumstances)
    for divisor in DIVISORS:
        enough = served_if_scaled(circumstances, rows, 1 / divisor, request=request > 0)
        if enough is None:
            enough = enough_by_sum(circumstances, (there + request) * (divisor - 1) // divisor)
        if enough:
            return divisor, True
    return DIVISORS[0], False
