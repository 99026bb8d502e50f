"""What a program makes of its weights alone, which does not depend on the shape: moving averages, normalized weights.

``old.data = old.data * m + new.data * (1 - m)`` goes through all weights on one line, within the forward of a loss or
below it. torch's own parametrizations make a weight anew for each use.
"""

from __future__ import annotations

import re

import numpy as np

from oomscope.model import NO_STACK, BoolArray, IntArray, StackTable, package_path

MOST = 0.9
"""Of what a line makes: so much is as large as weights are."""
OF_ALL = 0.5
"""Of the sizes of weights: so many a line makes at least that goes through them."""
LEAST = 8
"""Requests of such a line."""
_PARAMETRIZED = re.compile(r"^torch/nn/utils/(parametriz\w*|weight_norm|spectral_norm)\.py$")


def of_weights(stacks: StackTable, size: IntArray, stack: IntArray, made: BoolArray, weights: IntArray) -> BoolArray:
    """bool[requests]: which are made of weights alone.

    Args:
        stacks: of the snapshot.
        size: int64[requests], bytes.
        stack: int64[requests], the number of the stack of each.
        made: bool[requests], which a forward makes.
        weights: int64[weights], bytes of each.
    """
    rows = np.flatnonzero(made & (stack != NO_STACK))
    order = rows[np.argsort(stack[rows], kind="stable")]
    found = np.zeros(len(size), np.bool_)
    for own in np.split(order, np.flatnonzero(np.diff(stack[order])) + 1) if len(order) else []:
        files = [package_path(frame.filename) for frame in stacks[int(stack[own[0]])]]
        if any(file and _PARAMETRIZED.match(file) for file in files):
            found[own] = True
        elif not files[0] and len(own) >= LEAST:
            shared = np.intersect1d(size[own], weights)
            found[own] = np.isin(size[own], shared).mean() >= MOST and len(shared) >= OF_ALL * len(np.unique(weights))
    return found
