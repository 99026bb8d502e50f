"""Graphs that were made and dropped without a backward: evaluations without `no_grad`.

A forward that needs no graph drops what a layer made soon after the next one has used it. What many lines made, layer
after layer, and what all goes at once when the pass has ended, was saved for a backward.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.lifetime_facts import LifetimeFacts
from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending, places

_LEAST_LAYERS = 4
"""Blocks of one stack that go at once; the last layers of a pass without a graph leave one or two."""
_LEAST_STACKS = 6
"""Which leave so many blocks. A graph saves for nearly every line of a layer; a cache keeps keys and values, for two
kinds of attention at most, and a list of outputs one or two."""
_FAR_SMALLER = 64
"""Times that a weight is larger than what its product makes, at most."""
_AT_ONCE = 2
"""Entries from an allocation to the one that completes its free, if nothing lies between."""


def dropped_graphs(facts: LifetimeFacts, rows: IntArray) -> BoolArray:
    """Which of `rows` were saved for a backward that never came.

    Args:
        facts: of the device.
        rows: int64[n], of the lifetimes: what forwards made, and no backward found.
    """
    forwards = facts.births(facts.happens(FORWARD))
    freed, stack = facts.lifetimes.freed[rows], facts.lifetimes.stack[rows]
    # Two frees with no allocation of a forward between them are of the same moment.
    moment = places(forwards, freed)
    may = ~facts.before[rows] & (freed < facts.end) & (stack >= 0) & ~_copies_of_weights(facts)[rows]
    if not may.any():
        return may
    pairs, count = np.unique(np.stack([moment[may], stack[may]]), axis=1, return_counts=True)
    ends, stacks = np.unique(pairs[0, count >= _LEAST_LAYERS], return_counts=True)
    return np.asarray(may & np.isin(moment, ends[stacks >= _LEAST_STACKS]))


def _copies_of_weights(facts: LifetimeFacts) -> BoolArray:
    """Autocast keeps its copies of weights, half as large, until it ends; with a graph or without.

    A copy is made for a product, whose result the same line makes right after it; a norm makes its statistics there.
    """
    weights = ascending(facts.bytes[(facts.before & facts.lives) | (facts.role == Role.LOAD)])
    halves = np.isin(facts.bytes * 2, weights)
    # Where C++ frames are recorded, they name autocast's copies.
    named = facts.marked(Mark.CAST | Mark.PRODUCT | Mark.COMPUTED).any()
    return halves & (facts.marked(Mark.CAST) if named else _made_for_a_result(facts))


def _made_for_a_result(facts: LifetimeFacts) -> BoolArray:
    """Which rows are followed by another of the same stack, the next or the one after it, that is not far smaller.

    A workspace, which is given back at once, is no result.
    """
    order = facts.lifetimes.by_birth()
    stack, size = facts.lifetimes.stack[order], facts.bytes[order]
    size = np.where(facts.lifetimes.freed[order] - facts.lifetimes.born[order] <= _AT_ONCE, 0, size)
    found = np.zeros(len(facts), np.bool_)
    for further in (1, 2):
        alike = (stack[further:] == stack[:-further]) & (size[further:] * _FAR_SMALLER >= size[:-further])
        found[order[:-further][alike]] = True
    return found
