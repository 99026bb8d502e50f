"""Whether one factor explains a change: another batch makes every activation larger by the same."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from oomscope.analysis.compare.pairing import TOLERANCE, LiveBlocks
from oomscope.model.arrays import FloatArray, IntArray

LEAST_SITES = 3
"""One line that makes larger tensors is a change of that line."""
LEAST_SHARE = 0.5
"""Of the bytes whose size changed, so many must have changed by the factor."""
LEAST_CHANGE = 0.015
"""A factor nearer to 1 is rounding."""
_MOST_DENOMINATOR = 64
_DIGITS = 1e-4


def find_factor(sites: Iterable[tuple[LiveBlocks, LiveBlocks]]) -> float | None:
    """The factor by which most of what changed its size did so; None where there is none.

    Args:
        sites: the live blocks of each site before and after.
    """
    found = [_ratios(before, after) for before, after in sites]
    if not found:
        return None
    log, weight = (np.concatenate(column) for column in zip(*found, strict=True))
    site = np.repeat(np.arange(len(found)), [len(ratios) for ratios, _ in found])
    changed = np.abs(log) > LEAST_CHANGE
    log, weight, site = log[changed], weight[changed], site[changed]
    if not len(log):
        return None
    inside = _densest(log, weight)
    if weight[inside].sum() < LEAST_SHARE * weight.sum() or len(np.unique(site[inside])) < LEAST_SITES:
        return None
    return _plain(float(np.exp(_median(log[inside], weight[inside]))))


def _ratios(before: LiveBlocks, after: LiveBlocks) -> tuple[FloatArray, FloatArray]:
    """The logarithms of the ratios of requests, and the bytes that stand for each.

    As many blocks are paired by size, others in the order in which they were made: where one instant lies later in a
    pass, it is the first ones that both have.
    """
    count = min(len(before.requested), len(after.requested))
    ours, theirs = before.requested, after.requested
    if len(ours) == len(theirs):
        ours, theirs = np.sort(ours), np.sort(theirs)
    ours, theirs = ours[:count], theirs[:count]
    known = (ours > 0) & (theirs > 0)
    ours, theirs = ours[known].astype(np.float64), theirs[known].astype(np.float64)
    return np.log(theirs / ours), np.sqrt(ours * theirs)


def _densest(log: FloatArray, weight: FloatArray) -> IntArray:
    """The rows within the tolerance of one another that weigh most."""
    order = np.argsort(log, kind="stable")
    ordered = log[order]
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    end = np.searchsorted(ordered, ordered + 2 * TOLERANCE, side="right")
    heaviest = int(np.argmax(sums[end] - sums[np.arange(len(ordered))]))
    inside: IntArray = order[heaviest : int(end[heaviest])]
    return inside


def _plain(factor: float) -> float:
    """The fraction of small numbers that `factor` is but for the last digits: batches and lengths are such numbers."""
    simple = Fraction(factor).limit_denominator(_MOST_DENOMINATOR)
    return float(simple) if simple and abs(float(simple) / factor - 1) < _DIGITS else factor


def _median(log: FloatArray, weight: FloatArray) -> float:
    order = np.argsort(log, kind="stable")
    sums = np.cumsum(weight[order])
    low, high = np.searchsorted(sums, [sums[-1] * 0.499999, sums[-1] * 0.500001])
    last = len(log) - 1
    return float(log[order][min(int(low), last)] + log[order][min(int(high), last)]) / 2
