"""The passes of a loop, where the program marks each with a range."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from oomscope.analysis.said.range_names import is_programs, phase_named, unnumbered
from oomscope.analysis.said.ranges import Ranges
from oomscope.history import DeviceHistory
from oomscope.model import Action, IntArray

LEAST_PASSES = 2
LEAST_COVERED = 0.5
"""Of the allocations that were recorded: what the ranges must span. Others are a part of a pass, or beside the loop."""


def marked_passes(ranges: Ranges, history: DeviceHistory, optimizer_ends: IntArray) -> tuple[IntArray, list[str]]:
    """Where each pass begins, ascending, and its name; empty where no ranges are passes.

    Passes are ranges of one name, or of names that differ by a number, one after another, which name no phase and span
    most of what was allocated; of several such names, the one that spans most. Where optimizers step, each finished
    pass holds one step: an epoch holds several, and a micro-batch none.

    Args:
        ranges: of the device.
        history: of the device.
        optimizer_ends: the entries at which a step of the optimizer (of the last of several in a round) had ended.
    """
    born = history.trace.entries(Action.ALLOC)
    groups: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(ranges.names):
        if is_programs(name) and phase_named(name) is None:
            groups[unnumbered(name)].append(number)
    best: list[int] = []
    covered = max(int(np.ceil(LEAST_COVERED * len(born))), 1)
    for numbers in groups.values():
        if len(numbers) < LEAST_PASSES:
            continue
        begin, end = ranges.begin[numbers], ranges.end[numbers]
        count = _allocations(born, begin, end)
        follow = bool(np.all(end[:-1] <= begin[1:]))
        if follow and count >= covered and _hold_one_step_each(begin, end, optimizer_ends, history.entries):
            best, covered = numbers, count + 1
    return ranges.begin[best], _pass_names([ranges.names[number] for number in best])


def _allocations(born: IntArray, begin: IntArray, end: IntArray) -> int:
    """How many allocations lie in ranges that do not overlap."""
    return int((np.searchsorted(born, end, "left") - np.searchsorted(born, begin, "left")).sum())


def _hold_one_step_each(begin: IntArray, end: IntArray, optimizer_ends: IntArray, entries: int) -> bool:
    if not len(optimizer_ends):
        return True
    ends = np.sort(optimizer_ends)
    held = np.searchsorted(ends, end, "right") - np.searchsorted(ends, begin, "right")
    finished = end < entries
    return bool(np.all(held[finished] == 1) and np.all(held <= 1))


def _pass_names(names: list[str]) -> list[str]:
    """The names themselves where they tell passes apart; else each with its number, from 0."""
    if len(set(names)) == len(names):
        return names
    return [f"{name} {number}" for number, name in enumerate(names)]
