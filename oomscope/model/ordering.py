"""Order, places and numbers of values in long columns: numpy's answers, for what these columns hold much faster.

Numpy sorts or hashes what it is given, whatever it is. Here it is entries, sites, phases: integers that lie close
together, for which a table of all values between the least and the greatest answers without sorting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from oomscope.model.arrays import BoolArray, IntArray, UInt8Array

if TYPE_CHECKING:
    import numpy.typing as npt

_WIDEST = 4
"""A table has at most so many values for each value in the columns."""
_EXACT = 1 << 53
"""Up to here float64 holds every integer."""


_Integer = TypeVar("_Integer", bound=np.integer[Any])


def ascending(values: npt.NDArray[_Integer]) -> npt.NDArray[_Integer]:
    """The distinct values, ascending: `np.unique`, which is slow where most values differ, and loads `numpy.ma`."""
    ordered = np.sort(values)
    return ordered[_changes(ordered)]


def numbered(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, ascending, and for each value which of them it is: `np.unique` with `return_inverse`."""
    if not len(values):
        return values, np.zeros(0, np.int64)
    low, width = _extent(values)
    if width > _WIDEST * len(values):
        order = stable_order(values)
        ordered = values[order]
        first = _changes(ordered)
        number = np.empty(len(values), np.int64)
        number[order] = np.cumsum(first) - 1
        return ordered[first], number
    place = np.subtract(values, low, dtype=np.int64)
    is_there = np.zeros(width, np.bool_)
    is_there[place] = True
    number = np.cumsum(is_there, dtype=np.int32)
    return np.flatnonzero(is_there) + low, (number[place] - 1).astype(np.int64)


def summed(keys: IntArray, values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct keys, ascending, and the sum of the values of each."""
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    low, width = _extent(keys)
    if width <= _WIDEST * len(keys) and np.abs(values, dtype=np.float64).sum() < _EXACT:
        place = np.subtract(keys, low, dtype=np.int64)
        is_there = np.zeros(width, np.bool_)
        is_there[place] = True
        found = np.flatnonzero(is_there)
        return found + low, np.bincount(place, values, width)[found].astype(np.int64)
    order = stable_order(keys)
    ordered = keys[order]
    starts = np.flatnonzero(_changes(ordered))
    return ordered[starts], np.add.reduceat(values[order], starts)


def places(ordered: IntArray, values: IntArray, side: Literal["left", "right"] = "left") -> IntArray:
    """Where each of `values` stands in `ordered`, which ascends: `np.searchsorted`."""
    if not len(ordered) or not len(values):
        return np.searchsorted(ordered, values, side)
    low, high = int(ordered[0]), int(ordered[-1])
    if high - low >= _WIDEST * len(values):
        return np.searchsorted(ordered, values, side)
    below = np.zeros(high - low + 2, np.int32)  # how many are less than low, low + 1, …, high + 1
    ends = np.append(np.flatnonzero(_changes(ordered))[1:], len(ordered))
    below[np.subtract(ordered[ends - 1], low, dtype=np.int64) + 1] = np.diff(ends, prepend=0)
    np.cumsum(below, out=below)
    wanted = np.subtract(np.clip(values, low, high), low, dtype=np.int64)
    if side == "right":
        wanted += 1
    found = below[wanted].astype(np.int64)
    if side == "left":
        found[values > high] = len(ordered)
    else:
        found[values < low] = 0
    return found


def among(values: npt.NDArray[np.integer[Any]], few: npt.NDArray[Any]) -> BoolArray:
    """Which `values` are among `few`, which may be any numbers: `np.isin`, which sorts both where they lie apart."""
    known = ascending(few)
    if not len(known):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(known[at] == values)


def is_any(kinds: UInt8Array, wanted: Iterable[int]) -> BoolArray:
    """Which of `kinds` (numbers of actions, categories, phases) are one of `wanted`."""
    is_wanted = np.zeros(np.iinfo(np.uint8).max + 1, np.bool_)
    is_wanted[list(wanted)] = True
    return is_wanted[kinds]


def stable_order(values: IntArray) -> IntArray:
    """What sorts `values` and keeps the order of equal ones: a stable `np.argsort`.

    Addresses and entries have few bits that tell them apart. Numpy counts sixteen at a time, without comparing values;
    of more than twice as many, the row goes into one sortable number with them.
    """
    if not len(values):
        return np.zeros(0, np.int64)
    key: IntArray = np.subtract(values, values.min(), dtype=np.int64)
    used = int(np.bitwise_or.reduce(key))
    shift = max((used & -used).bit_length() - 1, 0)
    bits, row_bits = (used >> shift).bit_length(), len(values).bit_length()
    if key.min() < 0 or bits + row_bits > 63:
        return np.argsort(values, kind="stable")
    key >>= shift  # in place: for millions of values each array counts
    if bits <= 32:
        order = np.argsort(key.astype(np.uint16), kind="stable")
        if bits > 16:
            key >>= 16
            order = order[np.argsort(key.astype(np.uint16)[order], kind="stable")]
        return order
    key <<= row_bits
    key |= np.arange(len(values))
    key.sort()
    key &= (1 << row_bits) - 1
    return key


def _extent(values: IntArray) -> tuple[int, int]:
    """The least value, and how many there are from it to the greatest."""
    low = int(values.min())
    return low, int(values.max()) - low + 1


def _changes(ordered: IntArray) -> BoolArray:
    """Which values differ from the one before."""
    differs = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:])
    return differs
