"""Scores of attention that a program writes out, where no name says attention."""

from __future__ import annotations

import math

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan import scores
from oomscope.analysis.plan.hints import LENGTH, kind_of
from oomscope.analysis.plan.scores import softmaxes_by_name
from oomscope.model import BoolArray

TABLE = 2
"""Sides of a table of relative places: one of differences, one of heads."""
MOST_HEADS = 64


def written_out(run: Run) -> BoolArray:
    """bool[requests]: see `plan.scores`; the length is the one that the steps of the recording were told."""
    return run.study.once("scores of the ledger", lambda: _written_out(run))


def with_their_gradients(run: Run, written: BoolArray) -> BoolArray:
    """`written` with what the backward makes of their size, where nothing else is as large."""
    others = np.unique(run.size[run.during(FORWARD) & (run.stack >= 0) & ~written])
    sizes = np.setdiff1d(np.unique(run.size[written]), others)
    return np.asarray(written | (run.during(BACKWARD) & np.isin(run.size, sizes)))


def _written_out(run: Run) -> BoolArray:
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & (run.step >= 0) & ~run.of(WORKSPACE))
    shapes = [step.shape for step in run.study.snapshot.recorded.steps]
    told = {value for shape in shapes for name, value in shape.items() if kind_of(name) == LENGTH}
    numbers = {value for value in told if isinstance(value, int)}
    steps = max(run.steps, 1)
    found = np.zeros(len(run.size), np.bool_)
    softmax = softmaxes_by_name(run.study.snapshot.stacks, run.stack)
    linear = run.marked(Mark.LINEAR)
    known = paths(run)
    found[scores.written_out(run.size, run.stack, rows, linear, known, numbers, steps, softmax, windows(run))] = True
    return found


def windows(run: Run) -> set[int]:
    """How many tokens a window has, as tables of relative places tell: of w × w there are (2w − 1)² differences."""
    found = set()
    for tensor in run.study.snapshot.recorded.tensors:
        if tensor.category == "parameter" and tensor.shape and len(tensor.shape) == TABLE:
            root = math.isqrt(max(tensor.shape))
            if root * root == max(tensor.shape) and root % 2 and min(tensor.shape) <= MOST_HEADS:
                found.add(((root + 1) // 2) ** 2)
    return found
