"""What a program makes in a loop over the items of a batch: as many requests as there are items, none of them larger.

A loss that goes through the images of a batch one by one is such a loop. What it keeps for each until the backward
grows with the batch by its number; what it gives back before the next item does not grow at all, nor does what
micro-batches make one after another.
"""

from __future__ import annotations

import numpy as np

from oomscope.allocator.program import Op, Program
from oomscope.analysis.plan.alignment import UNFRAMED
from oomscope.analysis.plan.recordings import Recording, Unit
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray

LEAST_ITEMS = 4
"""So many of one line must be there at once."""
BY_DATA = 0.1
"""How much larger or smaller one item's may be than another's."""
_NEARLY = 0.5
"""Of the growth in number, what must show in how many are there at once."""


def by_items(recording: Recording, unit: Unit, other: Recording, like: Unit) -> FloatArray:
    """float64[requests of `unit`]: how many times as many a line makes in `like`; 1 where that is no loop over items.

    The number of what it makes is in the ratio of one parameter that differs, and so is how many are there at once:
    of what micro-batches make one after another, these stay as many.
    """
    mine, theirs = recording.key[unit.begin : unit.end], other.key[like.begin : like.end]
    times = np.ones(len(mine))
    ratios = {like.shape[name] / value for name, value in unit.shape.items() if like.shape.get(name, value) != value}
    if not ratios:
        return times
    keys = max(int(mine.max(initial=UNFRAMED)), int(theirs.max(initial=UNFRAMED))) + 2
    here, there = (np.bincount(one - UNFRAMED, minlength=keys) for one in (mine, theirs))
    few = np.minimum(here, there) < LEAST_ITEMS
    here, there = np.where(few, 0, here), np.where(few, 0, there)
    differ = np.flatnonzero((here != there) & (np.arange(keys) + UNFRAMED != UNFRAMED))
    alike = [key for key in differ.tolist() if any(there[key] == here[key] * ratio for ratio in ratios)]
    if not alike:
        return times
    lives = [_lifetimes(one.program) for one in (recording, other)]
    for key in alike:
        rows = np.flatnonzero(mine - UNFRAMED == key)
        likes = np.flatnonzero(theirs - UNFRAMED == key)
        most, most_there = (
            _most_at_once(begin[numbers], end[numbers])
            for (begin, end), numbers in zip(lives, (unit.begin + rows, like.begin + likes), strict=True)
        )
        ratio = there[key] / here[key]
        if min(most, most_there) >= LEAST_ITEMS and (most_there / most - 1) / (ratio - 1) >= _NEARLY:
            times[rows] = ratio
    return times


def of_one_size(recording: Recording, unit: Unit, times: FloatArray, size: IntArray) -> BoolArray:
    """bool[requests of `unit`]: of those in loops, which are as large at the other shape, so that their number counts.

    Those that have no like there (-1 in `size`) are more of the same.
    """
    own = recording.program.size[unit.begin : unit.end]
    return np.asarray((times != 1) & ((np.abs(size - own) <= BY_DATA * own) | (size < 0)))


def _lifetimes(program: Program) -> tuple[IntArray, IntArray]:
    """int64[requests], twice: the steps of a program at which each is made and given back."""
    begin = np.full(program.requests, len(program.op), np.int64)
    end = begin.copy()
    for ops, column in (((Op.MALLOC,), begin), ((Op.FREE, Op.FREE_REQUESTED), end)):
        steps = np.flatnonzero(np.isin(program.op, ops))
        column[program.argument[steps]] = steps
    return begin, end


def _most_at_once(begin: IntArray, end: IntArray) -> int:
    """How many are there at once, at most."""
    ends = np.sort(end)
    made = np.arange(1, len(begin) + 1)
    return int((made - np.searchsorted(ends, np.sort(begin))).max(initial=0))
