"""A program that runs under autocast, as a model that is in 16 bits throughout."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import TEMPORARY, WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger.casts import autocast_copies, has_halves
from oomscope.analysis.ledger.draft import Draft
from oomscope.analysis.ledger.dtypes.precision import SMALL, in_half
from oomscope.analysis.ledger.losses import LEAST, losses
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.whole_numbers import whole_numbers
from oomscope.model import BoolArray


def casts_weights(run: Run) -> bool:
    """Whether weights are kept in 32 bits and cast in every forward."""
    return not has_halves(run) and bool(len(autocast_copies(run)))


def without_autocast(run: Run) -> tuple[Draft, Draft, Draft]:
    """Weights, gradients, states, and what a forward makes in full precision, at half their size; without the casts.

    What a forward made in 16 bits stays as it is, and so do gradients in the backward that are as large. In the second
    draft, that is everything that nothing but what is around it tells. In the third, kernels still copy weights, into
    another layout.
    """
    half, doubtful = in_half(run)
    # Of what a loss makes, it is given the half of the largest in 16 bits.
    loss = losses(run) & (run.size >= LEAST)
    half |= loss & np.isin(2 * run.size, np.unique(run.size[loss]))
    copies = np.zeros(len(run.size), np.bool_)
    copies[autocast_copies(run)] = True
    likely, other = (_draft(run, known) for known in (half | copies, half | doubtful | copies))
    return likely.without(copies), other.without(copies), likely


def _draft(run: Run, half: BoolArray) -> Draft:
    whole = whole_numbers(run) & ~half
    kept = half | whole | run.of(WORKSPACE) | (run.size < SMALL) | _gradients_in_half(run, half)
    return run.draft.scaled(0.5, ~kept)


def _gradients_in_half(run: Run, half: BoolArray) -> BoolArray:
    """Temporaries of a backward that are as large as more bytes that a forward made in 16 bits than in 32."""
    sizes, which = np.unique(run.size, return_inverse=True)
    made = run.during(FORWARD) & ~run.of(WORKSPACE)
    share = np.bincount(which[made & half], minlength=len(sizes)) / np.maximum(
        np.bincount(which[made], minlength=len(sizes)), 1
    )
    back = run.during(BACKWARD) & run.of(TEMPORARY) & ~run.gradients & ~run.like_parameter
    found: BoolArray = back & (share > 0.5)[which]
    return found
