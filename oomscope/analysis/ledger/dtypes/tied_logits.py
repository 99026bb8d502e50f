"""Logits that a line of the program makes with a parameter: ``features @ self.embedding.weight.t()`` is a product, too.

No layer's frame tells it. Three sizes do: those of what goes in, of the parameter and of the logits that a loss is
given leave a whole number of rows, the same for both. What is made of a layer's product, as larger logits of an image,
is none.
"""

from __future__ import annotations

from itertools import product
from math import isqrt

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray

LEAST = 1 << 20
"""Bytes of logits, and of the table of an embedding."""
FLOAT = 4
"""Bytes of a number."""
BEFORE = 8
"""Requests from what goes into the logits to these, at most: a norm's result has statistics behind it."""
_LOSSES = {"cross_entropy", "log_softmax"}


def tied_logits(run: Run) -> BoolArray:
    """bool[requests]: such logits. Found once."""
    return run.study.once("tied logits of the ledger", lambda: _tied_logits(run))


def _tied_logits(run: Run) -> BoolArray:
    stacks, size, linear = run.study.snapshot.stacks, run.size, run.marked(Mark.LINEAR)
    called = [any(frame.name in _LOSSES for frame in stacks[one][:2]) for one in range(len(stacks))]
    named = np.array([*called, False])[run.stack]
    found = np.zeros(len(size), np.bool_)
    weights = np.unique(size[run.parameters & (size >= LEAST)]).tolist()
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & ~run.of(WORKSPACE))
    for place in np.flatnonzero(named[rows] & (size[rows] >= LEAST)).tolist():
        before = rows[max(place - 1 - BEFORE, 0) : place]
        before = before[1 + np.flatnonzero(linear[before]).max(initial=-1) :]
        if len(before) and not named[before[-1]] and size[before[-1]] == size[rows[place]]:
            *given, logits = before.tolist()
            pairs = product(size[given].tolist(), weights)
            found[logits] = any(_is_product(one, weight, int(size[logits])) for one, weight in pairs)
    return found


def _is_product(given: int, weight: int, made: int) -> bool:
    """Whether sizes are those of N × C, V × C and N × V numbers."""
    square, rest = divmod(given * made, FLOAT * weight)
    count = isqrt(square)
    return not rest and count * count == square > 0 == given % (FLOAT * count) == made % (FLOAT * count)
