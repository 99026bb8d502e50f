"""What a forward makes of whole numbers and truth values, which take as much in 16 bits as in 32."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray

_DROPOUT = re.compile(r"dropout")
_POOL = re.compile(r"max_pool")
MASK, INDICES = 4, 2
"""A truth value has a quarter of the bytes of a float32, an index twice as many."""


def whole_numbers(run: Run) -> BoolArray:
    """bool[requests]: masks of a dropout, made just before its result, and places of a pooling, made just after."""
    found = np.zeros(len(run.size), np.bool_)
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0))
    first, second = rows[:-1], rows[1:]
    together = (second - first == 1) & (run.stack[first] == run.stack[second])
    drops, pools = _called(run, _DROPOUT), _called(run, _POOL)
    found[first[together & drops[first] & (MASK * run.size[first] == run.size[second])]] = True
    found[second[together & pools[first] & (INDICES * run.size[first] == run.size[second])]] = True
    return found


def _called(run: Run, name: re.Pattern[str]) -> BoolArray:
    """bool[requests]: which are made in a function of that name."""
    stacks = run.study.snapshot.stacks
    inside = [any(name.search(frame.name) for frame in stacks[one]) for one in range(len(stacks))]
    found: BoolArray = np.array([*inside, False])[run.stack]
    return found
