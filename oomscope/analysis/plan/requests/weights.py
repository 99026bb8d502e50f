"""What a program makes of its weights alone, which does not depend on the shape: moving averages, normalized weights.

``old.data = old.data * m + new.data * (1 - m)`` goes through all weights on one line, within the forward of a loss or
below it, and so do layers that standardize their weights. torch's own parametrizations make a weight anew for each use.
"""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.own_layers import LEAST_WEIGHTS, VECTOR
from oomscope.model import NO_STACK, BoolArray, IntArray, StackTable, package_path
from oomscope.model.ordering import ascending

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
    used = ascending(stack[rows])
    numbers: dict[object, int] = {}
    lines = np.array([numbers.setdefault(_line(stacks, one), len(numbers)) for one in used.tolist()], np.int64)
    line = lines[np.searchsorted(used, stack[rows])]
    order = np.argsort(line, kind="stable")
    found, every = np.zeros(len(size), np.bool_), np.unique(weights)
    for own in np.split(rows[order], np.flatnonzero(np.diff(line[order])) + 1) if len(rows) else []:
        files = [package_path(frame.filename) for frame in stacks[int(stack[own[0]])]]
        if any(file and _PARAMETRIZED.match(file) for file in files):
            found[own] = True
        elif not files[0] and len(own) >= LEAST:
            shared = np.intersect1d(size[own], weights)
            # A layer that standardizes its weight does so with matrices alone.
            matrices = shared[shared > VECTOR]
            matrices = matrices if len(matrices) >= LEAST_WEIGHTS else matrices[:0]
            of_all = max(_share(shared, every), _share(matrices, every[every > VECTOR]))
            found[own] = np.isin(size[own], shared).mean() >= MOST and of_all >= OF_ALL
    return found


def _line(stacks: StackTable, stack: int) -> object:
    """The innermost line of a stack, if it is the program's own; else the stack."""
    frames = stacks[stack]
    if not frames or package_path(frames[0].filename):
        return stack
    return frames[0].filename, frames[0].line, frames[0].name


def _share(part: IntArray, whole: IntArray) -> float:
    return len(part) / max(len(whole), 1)
