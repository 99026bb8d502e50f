"""The highest value in each of many ranges of a column, whatever their number and length."""

from __future__ import annotations

import numpy as np

from oomscope.model import IntArray

_WIDTH = 512
"""Values in a stretch whose maximum is kept; ranges are looked through by stretches, and by values at their ends."""


def range_max(values: IntArray, begin: IntArray, end: IntArray) -> IntArray:
    """The maximum of ``values[begin:end]`` for each pair; ``values[begin]`` where a range is empty.

    Ranges may lie in one another, a hundred thousand deep: none costs more than a few thousand steps.

    Args:
        values: int64[n], n > 0.
        begin: int64[ranges], each below n.
        end: int64[ranges], each at most n.
    """
    levels = _levels(values)
    pairs = zip(begin.tolist(), end.tolist(), strict=True)
    return np.array([_max(values, levels, first, last) for first, last in pairs], np.int64)


def _levels(values: IntArray) -> list[IntArray]:
    """Level k: the maximum of 2**k stretches from each on."""
    levels = [np.maximum.reduceat(values, np.arange(0, len(values), _WIDTH))]
    while len(levels[-1]) > (step := 1 << (len(levels) - 1)):
        levels.append(np.maximum(levels[-1][:-step], levels[-1][step:]))
    return levels


def _max(values: IntArray, levels: list[IntArray], first: int, last: int) -> int:
    if last <= first:
        return int(values[first])
    if last - first <= 2 * _WIDTH:
        return int(values[first:last].max())
    left, right = -(-first // _WIDTH), last // _WIDTH
    level = (right - left).bit_length() - 1
    inner = max(int(levels[level][left]), int(levels[level][right - (1 << level)]))
    edges = (values[first : left * _WIDTH], values[right * _WIDTH : last])
    return max(inner, *(int(edge.max()) for edge in edges if len(edge)))
