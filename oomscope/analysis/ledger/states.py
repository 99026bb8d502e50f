"""Which states an optimizer keeps for each parameter."""

from __future__ import annotations

from collections import Counter

import numpy as np

from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray

MOST = 3
"""States of a parameter: two moments and the largest of the second one, as AMSGrad keeps."""


def first_states(run: Run) -> BoolArray:
    """The first state of each trained parameter, by size and order; the others are second moments and the like.

    The gradients of a recurrent layer are parts of one piece, as large as no parameter; its states are not. Of sizes
    that no gradient has, there are as many parameters as the states allow, and never more: a frozen copy has none.
    """
    parameters, known = Counter(run.trained.tolist()), Counter(run.size[run.parameters].tolist())
    states, each = Counter(run.size[run.states].tolist()), max(per_parameter(run), 1.0)
    allowed = {size: round(number / each) for size, number in states.items()}
    trained = {size: max(count, min(known[size], allowed.get(size, 0))) for size, count in parameters.items()}
    left = {size: min(trained.get(size, number), number) for size, number in allowed.items()}
    found = np.zeros(len(run.size), np.bool_)
    for row in np.flatnonzero(run.states).tolist():
        size = int(run.size[row])
        if left[size] > 0:
            left[size] -= 1
            found[row] = True
    return found


def per_parameter(run: Run) -> float:
    """How many states a trained parameter has: by the number of each size, of most bytes.

    Tied weights have several gradients a step, an average of the weights as many parameters again, and cuDNN keeps the
    weights of a recurrent layer a second time in one piece. So the fewer of gradients and parameters count, unless an
    optimizer would keep more than any does: gradients of a recurrent layer lie in one piece, too.
    """
    states = Counter(run.size[run.states].tolist())
    counts = [Counter(run.trained_alone.tolist()), Counter(run.size[run.parameters].tolist())]
    found = []
    for size, number in states.items():
        each = [number / count[size] for count in counts if count[size]]
        if each:
            found.append((max((one for one in each if one <= MOST), default=min(each)), number * size))
    if not found:
        return float(run.size[run.states].sum()) / max(float(run.trained.sum()), 1.0)
    found.sort()
    weights = np.cumsum([weight for _, weight in found])
    return found[int(np.searchsorted(weights, weights[-1] / 2))][0]
