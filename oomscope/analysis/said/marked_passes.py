"""The passes of a loop, where the program marks each with a range."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from oomscope.analysis.said.range_names import is_programs, phase_named, unnumbered
from oomscope.analysis.said.ranges import NO_RANGE, Ranges
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import IntArray

LEAST_PASSES = 2
LEAST_COVERED = 0.5
"""Of the allocations that were recorded: what the ranges must span. Others are a part of a pass, or beside the loop."""


def marked_passes(ranges: Ranges, history: DeviceHistory, optimizer_ends: IntArray) -> tuple[IntArray, list[str]]:
    """Where each pass begins, ascending, and its name; empty where no ranges are passes.

    Passes are ranges of one name, or of names that differ by a number, which lie in no other range of the program, name
    no phase, and span most of what was allocated. Where optimizers step, each finished pass holds one step: an epoch
    holds several, and a micro-batch none.

    Args:
        ranges: of the device.
        history: of the device.
        optimizer_ends: the entries at which a step of the optimizer (of the last of several in a round) had ended.
    """
    born = np.sort(history.lifetimes.born[history.lifetimes.born > BEFORE])
    groups: dict[str, list[int]] = defaultdict(list)
    for number in _outermost(ranges):
        groups[unnumbered(ranges.names[number])].append(number)
    best: list[int] = []
    covered = int(np.ceil(LEAST_COVERED * len(born)))
    for numbers in groups.values():
        count = _allocations(born, ranges.begin[numbers], ranges.end[numbers])
        if (
            len(numbers) >= LEAST_PASSES
            and count >= max(covered, 1)
            and _hold_one_step_each(ranges.end[numbers], ranges.begin[numbers], optimizer_ends, history.entries)
        ):
            best, covered = numbers, count + 1
    begins = ranges.begin[best]
    return begins, _pass_names([ranges.names[number] for number in best])


def _outermost(ranges: Ranges) -> list[int]:
    """The program's own ranges that lie in no other of its own and name no phase."""
    inside = np.zeros(len(ranges), np.bool_)
    found = []
    for number, (name, parent) in enumerate(zip(ranges.names, ranges.parent.tolist(), strict=True)):
        inside[number] = parent != NO_RANGE and (inside[parent] or is_programs(ranges.names[parent]))
        if not inside[number] and is_programs(name) and phase_named(name) is None:
            found.append(number)
    return found


def _allocations(born: IntArray, begin: IntArray, end: IntArray) -> int:
    """How many allocations lie in ranges that do not overlap."""
    return int((np.searchsorted(born, end, "left") - np.searchsorted(born, begin, "left")).sum())


def _hold_one_step_each(end: IntArray, begin: IntArray, optimizer_ends: IntArray, entries: int) -> bool:
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
