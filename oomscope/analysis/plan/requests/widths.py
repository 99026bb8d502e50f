"""How many channels a program has, by the sizes of its weights: what a length divides should have so many a token.

A power of two divides nearly everything. What has 4,500 values for each of 256 tokens, where weights have 768 channels,
may as well be 1,500 tokens that stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from oomscope.model import BoolArray, IntArray

LEAST = 16
"""Channels."""
MOST_TIMES = 16
"""As many channels may be side by side, as queries, keys and values are, or the halves of a gate."""
A_FEW = 64
"""Values of a token: heads, channels of one, numbers of rows, a statistic."""
MOST_OF_A_VECTOR = 64 << 10
"""Bytes."""
_FLOATS, _ITEMS = (4, 2), (4, 2, 8, 1)


def widths_of(parameters: IntArray, vectors: Iterable[int]) -> list[int]:
    """The channels of vectors, and those that matrices have beside them; empty where no vector tells any."""
    known = {one for one in vectors if one >= LEAST}
    found = set(known)
    for size in np.unique(parameters).tolist():
        for item in _FLOATS:
            found |= {size // (item * width) for width in known if size % (item * width) == 0}
    return sorted(one for one in found if one >= LEAST)


def sides_of(parameters: IntArray) -> IntArray:
    """The sides of weights by their sizes alone, as a program makes them one after the other; empty where none tells.

    A layer makes its bias directly behind its weight, a block its norm behind a layer, so that what divides the one
    before it is a vector, or has one side of it. A matrix between two known vectors has no other sides.

    Args:
        parameters: int64[parameters], bytes, in order.
    """
    before, behind = parameters[:-1], parameters[1:]
    divides = before % np.maximum(behind, 1) == 0
    vectors = np.unique(behind[divides & (behind >= LEAST * _FLOATS[0]) & (behind <= MOST_OF_A_VECTOR)])
    between = np.unique(np.multiply.outer(vectors, vectors)) // _FLOATS[0]
    others = np.setdiff1d(parameters, [*between, *vectors])
    beside = [matrix // vectors[matrix % vectors == 0] for matrix in others]
    return np.unique(np.concatenate([vectors // _FLOATS[0], *beside])) if len(vectors) else vectors


def has_known_width(
    size: IntArray, length: IntArray, samples: IntArray, widths: Sequence[int], rare: int = A_FEW + 1
) -> BoolArray:
    """bool[requests]: which are so many values for each token of a length as the program has channels, or a few.

    Args:
        size: int64[requests], bytes.
        length: int64[requests], at which each was made.
        samples: int64[requests], likewise the batch; 0: not known, taken for one.
        widths: as of `widths_of`.
        rare: from which on the odd part of a few is none that they have by chance.
    """
    found = np.zeros(len(size), np.bool_)
    rows, which = np.unique(np.stack([size, length, np.maximum(samples, 1)], axis=1), axis=0, return_inverse=True)
    known = np.array(widths, np.int64)
    for item in _ITEMS:
        each, rest = np.divmod(rows[:, 0], np.maximum(rows[:, 1], 1) * rows[:, 2] * item)
        side_by_side = (each[:, None] % known == 0) & (each[:, None] <= MOST_TIMES * known)
        a_part = known % np.maximum(each[:, None], 1) == 0
        few = (each <= A_FEW) & (each // np.maximum(each & -each, 1) < rare)
        fits = (rest == 0) & (each > 0) & (few | (side_by_side | a_part).any(axis=1))
        found |= fits[which.reshape(-1)]
    return found
