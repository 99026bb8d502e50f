"""Ascending pairs of equal tokens of two sequences, as many as there are, or in blocks as long as there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np

from oomscope.model import IntArray

MOST_MATCHES = 100_000
"""Pairs of equal tokens, up to which blocks are looked for: each block looks at all of them. Steps of a recurrent
network repeat their tokens so often that there are many more."""


def common(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending pairs of places with equal tokens: of the longest blocks, or the most, where that is quicker."""
    there = Counter(other)
    if sum(count * there[token] for token, count in Counter(one).items()) > MOST_MATCHES:
        return _longest(np.array(one, np.int64), np.array(other, np.int64))
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


def _longest(one: IntArray, other: IntArray) -> list[tuple[int, int]]:
    """The longest common subsequence, by the table of its lengths, a row at a time: O(n · m) in numpy."""
    table = np.zeros((len(one) + 1, len(other) + 1), np.int32)
    for row, token in enumerate(one.tolist()):
        before = table[row]
        longer = np.where(other == token, before[:-1] + 1, before[1:])
        np.maximum.accumulate(longer, out=table[row + 1, 1:])
    pairs = []
    row, column = len(one), len(other)
    while row and column:
        if one[row - 1] == other[column - 1]:
            pairs.append((row - 1, column - 1))
            row, column = row - 1, column - 1
        elif table[row - 1, column] >= table[row, column - 1]:
            row -= 1
        else:
            column -= 1
    return pairs[::-1]
