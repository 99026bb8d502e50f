"""A second copy of a model: a reference, an average, or weights that were loaded beside it."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.categories import GRADIENT, OPTIMIZER_STATE
from oomscope.analysis.sites import SiteTable
from oomscope.history import DeviceHistory
from oomscope.model import BoolArray, IntArray, UInt8Array

_LEAST_TENSORS = 4


def find_duplicates(
    history: DeviceHistory, categories: UInt8Array, parameters: IntArray, sites: SiteTable
) -> BoolArray:
    """Which of the live rows `parameters` repeat, size for size, others made earlier by another line of the program.

    The same line called twice makes a copy, too, where the sizes come as one sequence twice over and only one half of
    them is trained.
    """
    copy = np.zeros(len(parameters), np.bool_)
    if len(parameters) < 2 * _LEAST_TENSORS:
        return copy
    order = np.argsort(history.lifetimes.born[parameters], kind="stable")
    size = history.size[parameters]
    stack = history.lifetimes.stack[parameters]
    caller = sites.callers(stack)
    makers = [order[caller[order] == one] for one in dict.fromkeys(caller[order].tolist()) if one >= 0]
    for number, later in enumerate(makers):
        for earlier in makers[:number]:
            if len(later) >= _LEAST_TENSORS and not copy[earlier].any() and _contains(size[earlier], size[later]):
                copy[later] = True
                break
    half = len(order) // 2
    trained = _trained(history, categories)
    twice = len(order) % 2 == 0 and bool(np.array_equal(size[order[:half]], size[order[half:]]))
    if not copy.any() and twice and 0 < trained <= 0.6 * len(order):
        copy[order[half:]] = True
    return copy


def _contains(whole: IntArray, part: IntArray) -> bool:
    """Whether `part` is nearly all of `whole`, each size as often."""
    if len(part) < 0.9 * len(whole) or len(np.unique(part)) < 2:
        return False
    sizes, count = np.unique(np.concatenate([whole, part]), return_counts=True)
    mine, mine_count = np.unique(part, return_counts=True)
    return bool(np.all(count[np.searchsorted(sizes, mine)] >= 2 * mine_count))


def _trained(history: DeviceHistory, categories: UInt8Array) -> int:
    """How many parameters have a gradient or a state, at the end."""
    live = history.lifetimes.freed >= history.entries
    gradients = int(np.count_nonzero(live & (categories == GRADIENT)))
    states = live & (categories == OPTIMIZER_STATE)
    stacks = np.unique(history.lifetimes.stack[states], return_counts=True)[1]
    return max(gradients, int(stacks.max(initial=0)))
