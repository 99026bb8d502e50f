"""Between what a peak with a remedy may lie: by the programs that it may be, and by what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.analysis.ledger.edits import (
    accumulate,
    adafactor,
    autocast,
    bf16,
    checkpoint,
    fused_loss,
    no_grad,
    offload_activations,
    optimizer_in_backward,
    sdpa,
    set_to_none,
)

LEAST_DOUBT = 0.004
"""Of the recorded peak: the room that every range leaves."""
_MEASURED_DOUBT = {
    accumulate.SLUG: 0.01, adafactor.SLUG: 0.01, autocast.SLUG: 0.06, bf16.SLUG: 0.06, checkpoint.SLUG: 0.06,
    fused_loss.SLUG: 0.04, no_grad.SLUG: 0.03, offload_activations.SLUG: 0.02, optimizer_in_backward.SLUG: 0.006,
    sdpa.SLUG: 0.035, set_to_none.SLUG: 0.006,
}  # fmt: skip
"""Of the recorded peak: by how much rows of these remedies were off at most, on programs that nobody had seen.

Nine in ten of 767 rows; of `bf16` and `checkpoint` eight in ten, for their range is at its widest then. They rest on
what a recording cannot show: what the program would cast, make again or call.
"""
WIDEST = 0.19
"""Of the recorded peak: a wider range helps nobody."""
NEAR = 0.035
"""Of the recorded peak: the part of a doubt that comes before all else."""


def measured_doubt(slugs: Sequence[str]) -> float:
    """What part of the recorded peak remedies are in doubt by, whatever they save."""
    return max(_MEASURED_DOUBT.get(slug, LEAST_DOUBT) for slug in slugs)


def range_of(likely: int, others: Sequence[int], doubt: int, base: int) -> tuple[int, int]:
    """From where to where a peak may be, no wider than `WIDEST`.

    Where the others and the doubt around all are too wide, a little on both sides of the likely one comes first, then
    the others, which are programs that may well be, and then the rest of the doubt.

    Args:
        likely: bytes at the peak of the likely program.
        others: the same of what else it may be.
        doubt: bytes by which each may be off.
        base: bytes at the recorded peak.
    """
    room, near = int(WIDEST * base), min(doubt, int(NEAR * base))
    apart = np.array([likely - min([likely, *others]), max([likely, *others]) - likely])
    whole, sides = apart + doubt, np.maximum(apart, near)
    if whole.sum() <= room:
        sides = whole
    elif sides.sum() > room:
        sides = near + (sides - near) * ((room - 2 * near) / (sides - near).sum())
    else:
        sides = sides + (whole - sides) * ((room - sides.sum()) / (whole - sides).sum())
    below, above = sides.astype(np.int64).tolist()
    return max(likely - below, 0), likely + above
