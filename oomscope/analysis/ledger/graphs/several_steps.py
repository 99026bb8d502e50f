"""What a forward makes for several steps of an optimizer, as a rollout does from which a policy learns for epochs."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION, TEMPORARY
from oomscope.analysis.labels.own_lines import own_lines
from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OPTIMIZER
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

SEVERAL = 2
"""Steps of an optimizer; a graph that a variable keeps until it is bound anew is there for one of them, too."""
SELDOM = 1 / 3
"""Of an optimizer's steps, at most: what two optimizers that one line steps in turn find made comes before half."""


def for_several_steps(run: Run) -> BoolArray:
    """bool[requests]: what a forward makes, within one step of the program, for several steps of one optimizer.

    Two optimizers that take turns, as those of a generator and a discriminator, have lines of their own.
    """
    several = np.zeros(len(run.size), np.bool_)
    for own in _of_each_optimizer(run):
        several |= np.searchsorted(own, run.end) - np.searchsorted(own, run.begin) >= SEVERAL
    return run.of(ACTIVATION, TEMPORARY) & several & (run.end < NEVER)


def now_and_then(run: Run) -> BoolArray:
    """bool[requests]: what lines make without a graph before a few of an optimizer's steps, as those of a rollout.

    Found once.
    """
    return run.study.once("now and then of the ledger", lambda: _now_and_then(run))


def _now_and_then(run: Run) -> BoolArray:
    optimizers = _of_each_optimizer(run)
    found = run.of(ACTIVATION, TEMPORARY) & run.during(FORWARD) & ~run.saved & (run.stack >= 0) & bool(optimizers)
    for own in optimizers:
        before = np.searchsorted(own, run.begin)
        pairs = np.unique(np.stack([run.stack, before])[:, run.stack >= 0], axis=1)
        times = np.bincount(pairs[0], minlength=len(run.study.snapshot.stacks) + 1)
        found &= times[run.stack] <= SELDOM * len(own)
    return found


def _of_each_optimizer(run: Run) -> list[IntArray]:
    """`optimizer_steps` by the lines of the program that call them, one within another.

    The innermost may be the same for two optimizers, as in a method of what holds a model and its optimizer.
    """
    rows, stacks = _first_of_steps(run), run.study.snapshot.stacks
    callers = [own_lines(stacks[one]) if one >= 0 else () for one in run.stack[rows].tolist()]
    return [run.begin[rows[[one == caller for one in callers]]] for caller in dict.fromkeys(callers)]


def optimizer_steps(run: Run) -> IntArray:
    """int64[steps]: the moment at which each step of an optimizer begins: between two there is a backward."""
    return run.begin[_first_of_steps(run)]


def _first_of_steps(run: Run) -> IntArray:
    """The number of the first request of each step of an optimizer."""
    rows = np.flatnonzero(run.during(OPTIMIZER))
    if not len(rows):
        return rows
    backward = np.cumsum(run.during(BACKWARD))[rows]
    found: IntArray = rows[np.append(True, np.diff(backward) > 0)]
    return found
