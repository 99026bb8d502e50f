"""Workspaces of a backward of convolutions, and how large they are in 16 bits.

cuDNN computes in a layout of its own, and copies there what a convolution is given and what it returns: its workspace
is as large as both, in the precision of both. That held to a few percent for 34 convolutions of lines, images and
volumes (float32, under autocast and in bf16; torch 2.11, cuDNN 9, an H200). For gradients of weights in float32 it may
choose a kernel that takes up to ten times as much instead; in 16 bits it chose none.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.requests.facts import LEAST_WORKSPACE
from oomscope.analysis.plan.scaling import workspaces
from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray

HALF = 0.5
ANOTHER_KERNEL = 2
"""From how much more on a workspace is no copy of what the one beside it copies."""
_BETWEEN = 2
"""Requests between two workspaces of one convolution: the gradient of its weight, and a copy of it."""


def in_half(run: Run) -> FloatArray:
    """float64[requests]: by what a workspace of a backward is smaller in 16 bits; 1 for everything else."""
    rows = np.flatnonzero(run.during(BACKWARD) & workspaces(run.recording))
    factor = np.ones(len(run.size))
    factor[rows] = HALF
    for first, second in _of_one_convolution(run, rows):
        smaller, larger = sorted((first, second), key=lambda row: int(run.size[row]))
        if run.size[larger] > ANOTHER_KERNEL * run.size[smaller]:
            factor[larger] = HALF * run.size[smaller] / run.size[larger]
    return factor


def _of_one_convolution(run: Run, rows: IntArray) -> list[tuple[int, int]]:
    """Workspaces one after another, of the gradient of what goes in and of that of the weight."""
    found: list[tuple[int, int]] = []
    for first, second in zip(rows.tolist(), rows[1:].tolist(), strict=False):
        between = run.size[first + 1 : second]
        is_free = not found or found[-1][1] != first
        if is_free and len(between) <= _BETWEEN and (between < max(LEAST_WORKSPACE, run.size[first] // 4)).all():
            found.append((first, second))
    return found
