"""Weights of their own that a program makes for each sample of a batch: a style modulates a convolution's (StyleGAN2).

They grow with the batch, but not with the side of an image. Features may be as large by chance.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.requests.facts import SMALL, Facts
from oomscope.model import BoolArray, IntArray

LEAST_SIZES = 3
"""Of one line, each of them a weight for each sample: one or two may be chance."""
KERNEL = 9
"""Places of a kernel: a factor that few features have."""


def weights_of_samples(facts: Facts, samples: IntArray) -> BoolArray:
    """bool[requests]: what may be so: lines make nothing large but a weight for each sample; and the backward of it.

    Args:
        facts: what is known of each request.
        samples: int64[requests], the batch that each was made at; 0: not known.
    """
    found = np.zeros(len(samples), np.bool_)
    rows = np.flatnonzero(facts.forward & facts.framed & ~facts.layered & ~facts.linear & (facts.size >= SMALL))
    each = facts.size[rows] // np.maximum(samples[rows], 1)
    like = (samples[rows] > 1) & (each * samples[rows] == facts.size[rows]) & np.isin(each, facts.weights)
    like &= each % KERNEL == 0
    for line in np.unique(facts.stack[rows[like]]).tolist():
        own = facts.stack[rows] == line
        if like[own].all() and len(np.unique(each[own])) >= LEAST_SIZES:
            found[rows[own]] = True
    others = np.unique(facts.size[facts.forward & ~found])
    sizes = np.setdiff1d(np.unique(facts.size[found]), others)
    return np.asarray(found | (facts.backward & np.isin(facts.size, sizes)))
