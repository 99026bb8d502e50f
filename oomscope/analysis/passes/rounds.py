"""Rounds of the outermost loop, found from stacks that come again and again."""

from __future__ import annotations

import numpy as np

from oomscope.history import DeviceHistory
from oomscope.model import IntArray, StackTable

_LEAST_ROUNDS = 3
"""What happens twice may be chance; three times is a loop."""


def find_rounds(births: IntArray, history: DeviceHistory, stacks: StackTable) -> IntArray:
    """Entries where a round of the outermost loop begins; empty where nothing repeats.

    A stack that is used in every layer comes more often than one that is used once a round. So the least number of runs
    that several stacks share is the number of rounds, and the earliest of those stacks begins each.

    The layers of a model repeat, too. They do so under one line of one ``forward``, and a loop there is no step.

    Args:
        births: rows of the lifetimes to look at, in the order in which they were born.
        history: the device.
        stacks: the snapshot's stacks.
    """
    stack = history.lifetimes.stack[births]
    births, stack = births[stack >= 0], stack[stack >= 0]
    if not len(births):
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(np.append(True, stack[1:] != stack[:-1]))
    runs = stack[starts]
    count = np.bincount(runs)
    first, last = np.full(len(count), len(runs)), np.zeros(len(count), np.int64)
    first[runs[::-1]] = np.arange(len(runs))[::-1]
    last[runs] = np.arange(len(runs))
    candidates = np.flatnonzero((count >= _LEAST_ROUNDS) & (last - first >= 0.5 * len(runs)))
    rounds = _shared_count(count[candidates])
    if not rounds:
        return np.zeros(0, np.int64)
    once = candidates[np.abs(count[candidates] - rounds) <= 1]
    if _under_one_forward(once, stacks):
        return np.zeros(0, np.int64)
    anchor = once[np.argmin(first[once])]
    return np.asarray(history.lifetimes.born[births[starts[runs == anchor]]])


def _shared_count(counts: IntArray) -> int:
    """The least count that at least two stacks, and a tenth of all, share (give or take the unfinished round)."""
    values, shared = np.unique(counts, return_counts=True)
    near = shared + np.array([shared[values == value - 1].sum() for value in values], np.int64)
    enough = np.flatnonzero(near >= max(2, 0.1 * len(counts)))
    return int(values[enough[0]]) if len(enough) else 0


def _under_one_forward(chosen: IntArray, stacks: StackTable) -> bool:
    """Whether the frames that all `chosen` stacks share, from the outermost inwards, hold a ``forward``."""
    outwards = [stacks.members[stacks.offsets[one] : stacks.offsets[one + 1]][::-1] for one in chosen.tolist()]
    for level in zip(*outwards, strict=False):
        if len(set(map(int, level))) > 1:
            return False
        if stacks.frames[int(level[0])].name.rpartition(".")[2] == "forward":
            return True
    return len(outwards) == 1
