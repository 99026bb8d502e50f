"""What a forward makes for several steps of an optimizer, as a rollout does from which a policy learns for epochs."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION, TEMPORARY
from oomscope.analysis.labels.phases import BACKWARD, OPTIMIZER
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

SEVERAL = 2
"""Steps of an optimizer; a graph that a variable keeps until it is bound anew is there for one of them, too."""


def for_several_steps(run: Run) -> BoolArray:
    """bool[requests]: what a forward makes, within one step of the program, for several steps of an optimizer."""
    steps = optimizer_steps(run)
    spanned = np.searchsorted(steps, run.end) - np.searchsorted(steps, run.begin)
    found: BoolArray = run.of(ACTIVATION, TEMPORARY) & (spanned >= SEVERAL) & (run.end < NEVER)
    return found


def optimizer_steps(run: Run) -> IntArray:
    """int64[steps]: the moment at which each step of an optimizer begins: between two there is a backward."""
    rows = np.flatnonzero(run.during(OPTIMIZER))
    backward = np.cumsum(run.during(BACKWARD))[rows]
    found: IntArray = run.begin[rows[np.append(True, np.diff(backward) > 0)]] if len(rows) else rows
    return found
