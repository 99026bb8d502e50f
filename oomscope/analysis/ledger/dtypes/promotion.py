"""What a forward computes with targets made of whole numbers: float32, whatever a model's precision is."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

LEAST = 1 << 20
"""Bytes of targets that matter."""
WHOLE = 2
"""Times as many bytes as a float32 has an index."""


def promoted(run: Run) -> BoolArray:
    """bool[requests]: targets of float32, and what is computed with them and as large, forward and backward.

    ``one_hot(label).float()`` gives float32, to which torch promotes a product with 16 bits. The whole numbers go with
    the line that casts them. What comes before the last product of a model belongs to the model.
    """
    return run.study.once("promotion of the ledger", lambda: _promoted(run))


def _promoted(run: Run) -> BoolArray:
    found, sizes = np.zeros(len(run.size), np.bool_), set[int]()
    linear = run.marked(Mark.LINEAR)
    for rows in forwards(run):
        products = np.flatnonzero(linear[rows])
        behind = rows[products[-1] + 1 :] if len(products) else rows[:0]
        for target in _cast(run, behind).tolist():
            made = behind[(behind >= target) & (run.size[behind] == run.size[target])]
            found[[target - 1, *made.tolist()]] = True
            sizes.add(int(run.size[target]))
    others = run.size[run.during(FORWARD) & (run.stack >= 0) & ~found]
    return np.asarray(found | (run.during(BACKWARD) & np.isin(run.size, np.setdiff1d([*sizes], others))))


def _cast(run: Run, rows: IntArray) -> IntArray:
    """What a line makes of whole numbers that it has just made, and gives those up for."""
    first, second = rows[:-1], rows[1:]
    together = (second - first == 1) & (run.stack[first] == run.stack[second]) & (run.size[second] >= LEAST)
    whole = (run.size[first] == WHOLE * run.size[second]) & (run.end[first] < run.end[second])
    at_once = run.end[first] - run.begin[second] == run.begin[second] - run.begin[first]
    found: IntArray = second[together & whole & at_once]
    return found
