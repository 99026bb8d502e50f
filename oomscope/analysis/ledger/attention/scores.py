"""Scores of attention that a program writes out, where no name says attention."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.kinds import BATCH, LENGTH, SIDE, kind_of
from oomscope.analysis.plan.requests import scores
from oomscope.analysis.plan.requests.pairs import Made, of_pairs
from oomscope.analysis.plan.requests.scores import between_projections, pixels, softmaxes_by_name
from oomscope.analysis.plan.requests.windows import windows as tokens_of_windows
from oomscope.model import BoolArray


def written_out(run: Run) -> BoolArray:
    """bool[requests]: see `plan.scores`; the length or side is the one that the steps of the recording were told."""
    return run.study.once("scores of the ledger", lambda: _written_out(run))


def of_triples(run: Run) -> BoolArray:
    """bool[requests]: scores by which pairs attend along a row, see `plan.pairs`, as a forward writes them out."""
    forward = run.during(FORWARD) & (run.stack >= 0) & ~run.of(WORKSPACE)
    none = np.zeros(len(run.size), np.bool_)
    made = Made(run.size, run.marked(Mark.LINEAR), forward, none, np.zeros(0, np.int64))
    found = np.zeros(len(run.size), np.bool_)
    for tokens in told(run, LENGTH):
        for samples in told(run, BATCH) or {1}:
            length, each = (np.full(len(run.size), one, np.int64) for one in (tokens, samples))
            found |= of_pairs(made, run.recording, length, each)[1] & forward
    return found


def told(run: Run, kind: str) -> set[int]:
    """The values that the steps of the recording were told of parameters of a kind."""
    shapes = [step.shape for step in run.study.snapshot.recorded.steps]
    values = {value for shape in shapes for name, value in shape.items() if kind_of(name, shape) == kind}
    return {value for value in values if isinstance(value, int)}


def with_their_gradients(run: Run, written: BoolArray) -> BoolArray:
    """`written` with what the backward makes of their size, where nothing else is as large."""
    others = np.unique(run.size[run.during(FORWARD) & (run.stack >= 0) & ~written])
    sizes = np.setdiff1d(np.unique(run.size[written]), others)
    return np.asarray(written | (run.during(BACKWARD) & np.isin(run.size, sizes)))


def _written_out(run: Run) -> BoolArray:
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & (run.step >= 0) & ~run.of(WORKSPACE))
    steps = max(run.steps, 1)
    found = np.zeros(len(run.size), np.bool_)
    softmax = softmaxes_by_name(run.study.snapshot.stacks, run.stack)
    linear = run.marked(Mark.LINEAR)
    cut, tokens = windows(run), told(run, LENGTH)
    found[scores.written_out(run.size, run.stack, rows, linear, paths(run), tokens, steps, softmax, cut)] = True
    tokens |= set() if cut else pixels(told(run, SIDE))
    found[between_projections(run.size, run.stack, rows, linear, tokens)] = True
    return found


def windows(run: Run) -> set[int]:
    """How many tokens a window has, see `plan.windows`."""
    return tokens_of_windows(run.study.snapshot.recorded.tensors)
