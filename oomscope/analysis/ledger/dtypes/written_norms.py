"""Norms: those that a function's name tells, and those that a program writes out by the mean of squares."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.draft import SPACING
from oomscope.analysis.ledger.dtypes.products import is_norm
from oomscope.analysis.ledger.paths import module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

LEAST_WIDTH = 8
"""Numbers of which a mean is taken."""
AT_ONCE = 2
"""Steps of the recording after which the squares are given back: their mean has been made."""


def norms(run: Run) -> BoolArray:
    """bool[requests]: what norms make in a forward."""
    return run.study.once("norms of the ledger", lambda: _norms(run))


def written_out(run: Run) -> BoolArray:
    """bool[requests]: what a module makes that takes squares, their mean, a root of it, and a result as large.

    ``x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)``. A power is in full precision under autocast, and so is
    what is multiplied with it.
    """
    found = np.zeros(len(run.size), np.bool_)
    for rows in calls(run):
        found[rows] = True
    return found


def calls(run: Run) -> list[IntArray]:
    """The same, one by one: squares, their mean, its root, a product of that, and mostly one with a weight."""
    return run.study.once("written norms of the ledger", lambda: _calls(run))


def _norms(run: Run) -> BoolArray:
    named = [stack for stack, path in paths(run).items() if is_norm(path)]
    return np.asarray(written_out(run) | (np.isin(run.stack, named) & run.during(FORWARD)))


def _calls(run: Run) -> list[IntArray]:
    found, known = [], paths(run)
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0))
    owner = [module_of(known[one]) for one in run.stack[rows].tolist()]
    for place in _squares(run, rows).tolist():
        end = place + 2
        while end < len(rows) and owner[end] == owner[place] and run.size[rows[end]] == run.size[rows[place + 1]]:
            end += 1
        whole = end > place + 2 and end < len(rows) and run.size[rows[end]] == run.size[rows[place]]
        if whole and owner[place] == owner[place + 1] == owner[end]:
            while end < len(rows) and owner[end] == owner[place]:
                end += 1
            found.append(rows[place:end])
    return found


def _squares(run: Run, rows: IntArray) -> IntArray:
    """Places in `rows` of what is given back as soon as something smaller by a whole number has been made of it."""
    size, begin = run.size[rows], run.begin[rows]
    smaller = (size[:-1] >= LEAST_WIDTH * size[1:]) & (size[:-1] % np.maximum(size[1:], 1) == 0)
    at_once = (begin[1:] < run.end[rows[:-1]]) & (run.end[rows[:-1]] <= begin[1:] + AT_ONCE * SPACING)
    found: IntArray = np.flatnonzero(smaller & at_once)
    return found
