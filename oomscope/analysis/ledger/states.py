"""Which states an optimizer keeps for each parameter."""

from __future__ import annotations

from collections import Counter

import numpy as np

from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray


def first_states(run: Run) -> BoolArray:
    """The first state of each trained parameter, by size and order; the others are second moments and the like."""
    left = Counter(run.trained.tolist())
    found = np.zeros(len(run.size), np.bool_)
    for row in np.flatnonzero(run.states).tolist():
        size = int(run.size[row])
        if left[size] > 0:
            left[size] -= 1
            found[row] = True
    return found


def per_parameter(run: Run) -> float:
    """Bytes of state for each byte of a trained parameter. Weights that are tied have several gradients a step."""
    known = int(run.size[run.parameters].sum())
    trained = min(int(run.trained.sum()), known or NEVER)
    return float(run.size[run.states].sum()) / max(trained, 1)
