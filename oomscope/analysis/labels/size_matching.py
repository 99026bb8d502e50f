"""Small questions about births and sizes, asked of whole columns."""

from __future__ import annotations

import numpy as np

from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending


def next_birth(born: IntArray, births: IntArray, end: int) -> IntArray:
    """For each of `born`, the first of `births` after it; `end` where there is none.

    Args:
        born: int64[n], entries; -1 for before the first.
        births: int64[m], those entries that count, ascending.
        end: the number of entries.
    """
    following = np.repeat(np.append(births, end), np.diff(births, prepend=-1, append=end))
    return np.asarray(following[np.minimum(born + 1, end)])


def last_birth(births: IntArray, before: IntArray, end: int) -> IntArray:
    """For each of `before`, which are entries or `end`, the last of `births` before it; -1 where there is none."""
    preceding = np.repeat(np.append(-1, births), np.diff(births, prepend=-1, append=end))
    return np.asarray(preceding[before])


def beyond(freed: IntArray, entry: IntArray, end: int) -> BoolArray:
    """Which `freed` come after an `entry` that did happen (is before `end`)."""
    return (entry < end) & (freed > entry)


def one_for_each(size: IntArray, order: IntArray, owed: IntArray) -> BoolArray:
    """Which rows are the first of their size, by `order`: as many of each size as `owed` holds."""
    chosen = np.zeros(len(size), np.bool_)
    if not len(size) or not len(owed):
        return chosen
    by_size = np.lexsort((order, size))
    ranked = size[by_size]
    first = np.searchsorted(ranked, ranked, side="left")
    rank = np.arange(len(ranked)) - first
    sizes, count = np.unique(owed, return_counts=True)
    at = np.minimum(np.searchsorted(sizes, ranked), len(sizes) - 1)
    chosen[by_size] = (sizes[at] == ranked) & (rank < count[at])
    return chosen


SCALAR = 8
"""Bytes; a state that only counts steps is no larger, and no parameter is as small."""
LEAST_SIZES = 2
"""Different ones; that tensors of a single size come as often again may be chance."""
NEARLY_ALL = 0.9
"""Of a model's bytes: a head or an embedding may be left out, and a few tensors be views of others."""


def shared_bytes(size: IntArray, others: IntArray) -> int:
    """Bytes of `size` that come again, tensor for tensor, among `others`."""
    sizes, count = np.unique(size, return_counts=True)
    theirs, their_count = np.unique(others, return_counts=True)
    if not len(sizes) or not len(theirs):
        return 0
    at = np.minimum(np.searchsorted(theirs, sizes), len(theirs) - 1)
    return int((np.where(theirs[at] == sizes, np.minimum(count, their_count[at]), 0) * sizes).sum())


def copies_all(size: IntArray, model: IntArray) -> bool:
    """Whether nearly all of `size`, by bytes, and of one `model` are the same sizes, as often.

    Args:
        size: bytes of each tensor that may be a copy.
        model: bytes of each parameter; the model may be there more than once already.
    """
    if len(ascending(size)) < LEAST_SIZES or not len(model):
        return False
    shared = shared_bytes(size, model)
    times = max(1, round(float(model.sum()) / float(size.sum())))
    return shared >= NEARLY_ALL * int(size.sum()) and shared * times >= NEARLY_ALL * int(model.sum())


def first_of_size(size: IntArray, group: IntArray, order: IntArray) -> BoolArray:
    """Which rows come first, by `order`, among those of their size and group."""
    chosen = np.zeros(len(size), np.bool_)
    if not len(size):
        return chosen
    by_group = np.lexsort((order, group, size))
    leads = np.append(True, (size[by_group][1:] != size[by_group][:-1]) | (group[by_group][1:] != group[by_group][:-1]))
    chosen[by_group[leads]] = True
    return chosen
