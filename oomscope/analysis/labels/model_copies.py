"""A second copy of a model: a reference, an average, or weights that were loaded beside it."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.labels.kinds import GRADIENT, OPTIMIZER_STATE
from oomscope.analysis.records import Location
from oomscope.history import DeviceHistory
from oomscope.model import BoolArray, IntArray, StackTable, UInt8Array
from oomscope.model.arrays import StackArray

_LEAST_TENSORS = 4


def find_duplicates(
    history: DeviceHistory, categories: UInt8Array, parameters: IntArray, stacks: StackTable, sites: SiteTable
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
    maker = _makers(stack, stacks, sites)
    makers = [order[maker[order] == one] for one in dict.fromkeys(maker[order].tolist()) if one >= 0]
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


def _makers(stack: StackArray, stacks: StackTable, sites: SiteTable) -> IntArray:
    """A number for the call that made each parameter: the reader's own line, and the function that it called there."""
    number: dict[tuple[object, ...], int] = {}
    made = np.full(len(stacks) + 1, -1, np.int64)
    for one in np.unique(stack[stack >= 0]).tolist():
        caller = sites.location(int(sites.caller_of[one]))
        inner = None
        for frame in stacks[one]:
            if Location(frame.filename, frame.line, frame.name) == caller:
                made[one] = number.setdefault((caller, inner), len(number))
                break
            inner = (frame.filename, frame.name)
    return np.asarray(made[stack])


def _contains(whole: IntArray, part: IntArray) -> bool:
    """Whether nine tenths of `part`, by bytes, come again in `whole`, and are most of it."""
    sizes, count = np.unique(part, return_counts=True)
    if len(sizes) < 2:
        return False
    others, their_count = np.unique(whole, return_counts=True)
    at = np.minimum(np.searchsorted(others, sizes), len(others) - 1)
    both = np.where(others[at] == sizes, np.minimum(count, their_count[at]), 0)
    same = int((both * sizes).sum())
    return same >= 0.9 * int(part.sum()) and same >= 0.5 * int(whole.sum())


def _trained(history: DeviceHistory, categories: UInt8Array) -> int:
    """How many parameters have a gradient or a state, at the end."""
    live = history.lifetimes.freed >= history.entries
    gradients = int(np.count_nonzero(live & (categories == GRADIENT)))
    states = live & (categories == OPTIMIZER_STATE)
    stacks = np.unique(history.lifetimes.stack[states], return_counts=True)[1]
    return max(gradients, int(stacks.max(initial=0)))
