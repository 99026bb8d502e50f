"""Activations with learned slopes (PReLU), which autocast computes in 16 bits as it does products."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger.draft import SPACING
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray

_ACTIVATION = re.compile(r"torch/nn/modules/activation\.py$")
LEAST = 1 << 20
"""Bytes; in what is smaller, sizes are equal by chance."""
SHORTLY = 10
"""Recorded steps before what went into it is given up, within which the backward of an activation begins."""


def learned_slopes(run: Run) -> BoolArray:
    """bool[requests]: what such activations make in a forward.

    The frames of those that are built in are all alike. The backward of this one makes the gradient of its slopes for
    every element before it adds those up, directly behind that of what went into it.
    """
    stacks = run.study.snapshot.stacks
    inside = [_is_built_in(run, stack) for stack in range(len(stacks))]
    rows = np.flatnonzero(np.array([*inside, False])[run.stack] & run.during(FORWARD) & (run.size >= LEAST))
    twice = _made_twice(run)
    found = {int(run.stack[row]) for row in rows.tolist() if _ends_behind(run, row, twice)}
    return np.isin(run.stack, np.array(sorted(found), np.int64)) & run.during(FORWARD)


def _is_built_in(run: Run, stack: int) -> bool:
    frames = run.study.snapshot.stacks[stack]
    return bool(len(frames)) and bool(_ACTIVATION.search(frames[0].filename.replace("\\", "/")))


def _made_twice(run: Run) -> BoolArray:
    """bool[requests]: the second of two that a backward makes one after the other, and as large."""
    again = np.append(False, (run.size[1:] == run.size[:-1]) & (run.begin[1:] == run.begin[:-1] + SPACING))
    return np.asarray(again & run.during(BACKWARD))


def _ends_behind(run: Run, row: int, twice: BoolArray) -> bool:
    """Whether what went into a request was given up shortly behind two as large."""
    before = np.flatnonzero((run.size[:row] == run.size[row]) & run.saved[:row])[-1:]
    end = int(run.end[before].max(initial=0))
    near = twice & (run.size == run.size[row]) & (run.begin < end) & (run.begin >= end - SHORTLY * SPACING)
    return bool(near.any())
