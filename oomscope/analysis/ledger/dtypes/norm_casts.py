"""What norms that a program writes out keep in float32 where its weights are in 16 bits.

A norm by the mean of squares is computed in float32 and cast back before the product with its weight, which then has a
line of its own: ``x = x * torch.rsqrt(variance + eps)``, ``return self.weight * x.to(dtype)``. Those that do all in one
line do not cast. A power and a product need the copy of what they are given in float32. T5's takes the variance of that
copy and multiplies what it was given itself, so both are kept; models with rotary places multiply the copy. Gemma's
weight is ``1 + weight`` in float32, and its cast comes last.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.ledger.dtypes.written_norms import calls, written_out
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.requests.calls import Line
from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray

FURTHER = 64
"""Requests from what is given to a norm to its squares, at most."""
RESULTS = 2
"""As large as what it is given: that by its root, and that by its weight."""
THE_COPY, BESIDE_IT = 1.0, 1.5
"""Bytes of what is kept, in parts of float32: the copy in float32 alone, or beside what it was made of."""


def in_float32(run: Run, *, copy_alone: bool) -> FloatArray:
    """float64[requests]: by what each is kept in parts of its size in float32, if norms cast it; 0 for all others.

    Args:
        run: the run.
        copy_alone: whether norms multiply the copy that they take squares of.
    """
    found = np.zeros(len(run.size))
    given = np.flatnonzero(run.saved & ~written_out(run) & ~run.recording.at_once)
    for rows in calls(run):
        results = rows[run.size[rows] == run.size[rows[0]]][1:]
        if len(results) != RESULTS or _line(run, results[0]) == _line(run, results[-1]):
            continue
        before = given[np.searchsorted(given, rows[0] - FURTHER) : np.searchsorted(given, rows[0])]
        last = before[run.size[before] == run.size[rows[0]]][-1:]
        found[last] = THE_COPY if copy_alone else BESIDE_IT
        if _adds_to_weight(run, rows, results):
            found[results[0]] = THE_COPY
    return found


def _line(run: Run, row: int) -> Line:
    """The innermost line of Python that made something."""
    return paths(run)[int(run.stack[row])][-1][-1]


def _adds_to_weight(run: Run, rows: IntArray, results: IntArray) -> bool:
    """Whether the line of the last product makes something small first: ``1 + weight``."""
    between = rows[(rows > results[0]) & (rows < results[-1])]
    return any(_line(run, row) == _line(run, results[-1]) for row in between.tolist())
