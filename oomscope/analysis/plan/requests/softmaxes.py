"""Scores that torch's own softmax tells, request by request, where their size says little or is that of much else.

Of what such a function makes, scores go into a product with values: what comes next is smaller. A gate or a pooling is
multiplied with something as large.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.requests.facts import SMALL, Facts
from oomscope.analysis.plan.requests.scores import LEAST_TOKENS
from oomscope.model import BoolArray, IntArray

MOST_HEADS = 128
FLOATS = (4, 2)
MOST_BEFORE = 6
"""Requests that a softmax is made of: a product, its scale, a mask, a cast."""
COPIED = 2
"""Copies of values between a softmax and its product, at most."""


def of_softmaxes(facts: Facts, at_once: BoolArray, length: IntArray, samples: IntArray) -> BoolArray:
    """bool[requests]: scores of as many heads for each pair of places, with what is made for them and of them.

    Args:
        facts: what is known of each request.
        at_once: bool[requests], which are given back at once, as workspaces are.
        length: int64[requests], at which each was made; 0: not known.
        samples: int64[requests], likewise the batch; 0: not known, taken for one.
    """
    found = into_products(facts, at_once, _has_heads(facts.size, length, samples))
    # What a backward makes of a size that nothing else has is of them, too.
    others = np.unique(facts.size[facts.forward & facts.framed & ~found])
    sizes = np.setdiff1d(np.unique(facts.size[found]), others)
    return np.asarray(found | (facts.backward & np.isin(facts.size, sizes)))


def into_products(facts: Facts, at_once: BoolArray, fits: BoolArray) -> BoolArray:
    """bool[requests]: softmaxes of those that fit, if they go into products, with what is made for and of them."""
    found = np.zeros(len(fits), np.bool_)
    rows = np.flatnonzero(facts.forward & facts.framed & ~at_once)
    softmax, size = made_by_softmax(facts)[rows], facts.size[rows]
    for place in np.flatnonzero(softmax & fits[rows]).tolist():
        end = place + 1
        while end < len(rows) and (facts.dropout[rows[end]] or softmax[end]):
            end += 1
        behind = size[end : end + 1 + COPIED]
        if not len(behind) or (behind >= size[place]).any():
            continue
        begin = place
        while begin and place - begin < MOST_BEFORE and _is_made_for(facts, rows, begin - 1, int(size[place])):
            begin -= 1
        own = rows[begin:end]
        found[own[np.isin(facts.size[own], (size[place], size[place] // 4, size[place] // 2))]] = True
    return found


def _is_made_for(facts: Facts, rows: IntArray, place: int, size: int) -> bool:
    """Whether what stands before a softmax is as large, and no layer's result."""
    row = rows[place]
    return bool(facts.size[row] == size and not facts.layered[row] and not facts.linear[row])


def _has_heads(size: IntArray, length: IntArray, samples: IntArray) -> BoolArray:
    """Which are as large as so many heads of scores between all places of each sample."""
    found = np.zeros(len(size), np.bool_)
    pairs = np.maximum(samples, 1) * length * length
    for item in FLOATS:
        each = np.maximum(pairs * item, 1)
        found |= (size % each == 0) & (size // each <= MOST_HEADS)
    return found & (length >= LEAST_TOKENS) & (size >= SMALL)


def made_by_softmax(facts: Facts) -> BoolArray:
    """bool[requests]: which torch's own function of that name makes."""
    stacks = facts.study.snapshot.stacks
    named = [any(frame.name == "softmax" for frame in stacks[one][:2]) for one in range(len(stacks))]
    return np.array([*named, False])[facts.stack]
