"""Scores that lie between two products of batches of matrices, as both products copy what they are given.

``q @ k.transpose(-2, -1)`` of heads that were split off copies queries and keys, which its backward needs, and makes
scores; the product with the values copies those, as large as the keys, and makes something as large as the queries.
Keys and values that were repeated for groups of queries are copies already, so that the queries alone are copied.
A softmax that is a method of a tensor has no name of its own.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.attention.written_out import LEAST_SCORES
from oomscope.analysis.ledger.graphs.never_backward import of_a_graph
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.run import Run
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray

MOST_BETWEEN = 12
"""Requests from one product to the other: scaled, masked, a softmax, cast, a dropout."""
SHARES = (0.25, 0.5, 1.0, 2.0)
"""Of scores: what is made of them, in another precision or as a mask."""


COPIES = 3
"""Queries, keys and values."""
STAGES = 3
"""Of scores: made, scaled or masked, a softmax."""


@frozen(eq=False)
class Attention:
    """One call.

    Attributes:
        queries, keys: the requests of their copies.
        scores: those of what lies between both products and is as large as the first one's result, or a mask of that.
    """

    queries: int
    keys: int
    scores: IntArray


def between_products(run: Run) -> BoolArray:
    """bool[requests]: the scores of all calls."""
    found = np.zeros(len(run.size), np.bool_)
    for call in attentions(run):
        found[call.scores] = True
    return found


def attentions(run: Run) -> tuple[Attention, ...]:
    """The calls of attention that are told so. Found once."""
    return run.study.once("matmuls of the ledger", lambda: tuple(_attentions(run)))


def _attentions(run: Run) -> list[Attention]:
    found: list[Attention] = []
    for rows in forwards(run):
        made = rows[~run.of(WORKSPACE)[rows]]
        size = run.size[made]
        for place in _products_of_copies(run, made).tolist():
            end = _next_product(run, made, place)
            between = made[place:end]
            shares = [round(share * int(size[place])) for share in SHARES]
            scores = between[np.isin(run.size[between], shares)]
            # A product whose result no backward needs has no softmax behind it.
            if of_a_graph(run)[scores].any():
                found.append(Attention(int(made[place - 2]), int(made[place - 1]), scores))
        found += _of_repeated_keys(run, made)
    return found


def _of_repeated_keys(run: Run, made: IntArray) -> list[Attention]:
    """Calls whose keys and values have been repeated before: three as large and kept, of which the product copies one.

    What lies between is made several times in a row, and at least once kept, until something as large as the queries.
    """
    found = []
    size, stack = run.size[made], run.stack[made]
    place = np.arange(COPIES, max(len(made), COPIES))
    ready = [of_a_graph(run)[made[place - one]] & (size[place - one] == size[place - 1]) for one in (1, 2, 3)]
    layers = np.any([run.marked(Mark.LINEAR)[made[place - one]] for one in (0, 1, 2, 3)], axis=0)
    large = (size[place] > size[place - 1]) & (size[place] >= LEAST_SCORES)
    copied = (stack[place - 1] == stack[place]) & (stack[place - 2] != stack[place])
    for first in place[ready[0] & ready[1] & ready[2] & ~layers & large & copied].tolist():
        end = _result(run, made, first)
        between = made[first:end]
        shares = [round(share * int(size[first])) for share in SHARES]
        scores = between[np.isin(run.size[between], shares)]
        if np.count_nonzero(run.size[scores] == size[first]) >= STAGES and of_a_graph(run)[scores].any():
            found.append(Attention(int(made[first - 1]), int(made[first - COPIES]), scores))
    return found


def _result(run: Run, made: IntArray, place: int) -> int:
    """The place at which something as large as the queries is made of the scores; `place` where nothing is."""
    for end in range(place + 1, min(place + 1 + MOST_BETWEEN, len(made))):
        if run.marked(Mark.LINEAR)[made[end]]:
            break
        if run.size[made[end]] == run.size[made[place - 1]] and run.stack[made[end]] != run.stack[made[end - 1]]:
            return end
    return place


def _products_of_copies(run: Run, made: IntArray) -> IntArray:
    """The places in `made` of what one line makes of two copies that a backward needs, and that is larger than both."""
    place = np.arange(2, max(len(made), 2))
    product, one, other = made[place], made[place - 2], made[place - 1]
    line = (run.stack[one] == run.stack[product]) & (run.stack[other] == run.stack[product])
    larger = run.size[product] > np.maximum(run.size[one], run.size[other])
    large = larger & (run.size[product] >= LEAST_SCORES) & ~run.marked(Mark.LINEAR)[product]
    found: IntArray = place[line & large & of_a_graph(run)[one] & of_a_graph(run)[other]]
    return found


def _next_product(run: Run, made: IntArray, place: int) -> int:
    """The place at which the product with the values begins; that of the first product where there is none.

    Its copy is as large as the second one of the first product, its result as the first.
    """
    queries, keys = (int(run.size[made[one]]) for one in (place - 2, place - 1))
    for end in range(place + 1, min(place + 1 + MOST_BETWEEN, len(made) - 1)):
        values, result = int(made[end]), int(made[end + 1])
        if run.marked(Mark.LINEAR)[values]:
            break
        alike = (int(run.size[values]), int(run.size[result])) == (keys, queries)
        if alike and of_a_graph(run)[values] and run.stack[values] == run.stack[result]:
            return end
    return place
