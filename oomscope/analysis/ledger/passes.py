"""The forwards of a run."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger.run import Run
from oomscope.model import IntArray


def forwards(run: Run) -> list[IntArray]:
    """The framed requests of each forward: between two there is a backward, or another step begins."""
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0))
    backward = np.cumsum(run.during(BACKWARD))[rows]
    parts: list[IntArray] = np.split(
        rows, np.flatnonzero((np.diff(run.step[rows]) != 0) | (np.diff(backward) != 0)) + 1
    )
    return [part for part in parts if len(part)]


def backward_of(run: Run, passes: list[IntArray], number: int) -> IntArray:
    """What is made backward behind a forward and before the next one."""
    first = int(passes[number][-1])
    last = int(passes[number + 1][0]) if number + 1 < len(passes) else len(run.size)
    rows = np.arange(first + 1, last)
    found: IntArray = rows[run.during(BACKWARD)[rows]]
    return found
