"""The change of whole stacks, with the lines of both recordings brought together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from oomscope.analysis.attribution.sites import is_script, stack_text
from oomscope.analysis.compare.matching import LineMatches
from oomscope.analysis.compare.records import StackChange
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location
from oomscope.model import NO_STACK, Frame, package_path

MOST_STACKS = 100

Chain: TypeAlias = tuple[object, ...]


def change_stacks(
    before: DeviceFindings, after: DeviceFindings, matches: LineMatches, unaccounted: int
) -> tuple[StackChange, ...]:
    """The stacks that changed most, and all others in a last row; they sum to the change of allocated bytes."""

    def known(location: Location) -> object:
        return matches.after_of.get(location, ("before", location))

    ours = _by_stack(before, known)
    theirs = _by_stack(after, lambda location: location)
    rows = []
    for chain in dict.fromkeys([*theirs, *ours]):
        text, now = theirs.get(chain, (None, 0))
        old, was = ours.get(chain, ((), 0))
        rows.append(StackChange(old if text is None else text, was, now))
    rows.sort(key=lambda row: (-abs(row.change), row.stack or ()))
    shown, rest = rows[:MOST_STACKS], rows[MOST_STACKS:]
    if rest or unaccounted:
        was, now = sum(row.before for row in rest), sum(row.after for row in rest)
        shown.append(StackChange(None, was, now + unaccounted))
    return tuple(shown)


def _by_stack(device: DeviceFindings, known: Callable[[Location], object]) -> dict[Chain, tuple[tuple[str, ...], int]]:
    """The live bytes of every stack: its frames as text, and the bytes; stacks of other lines of torch are one."""
    history, stacks = device.history, device.study.snapshot.stacks
    live = np.flatnonzero(history.lifetimes.allocated_at(device.at_entry))
    numbers, which = np.unique(history.lifetimes.stack[live], return_inverse=True)
    held = np.zeros(len(numbers), np.int64)
    np.add.at(held, which, history.size[live])
    found: dict[Chain, tuple[tuple[str, ...], int]] = {}
    for number, count in zip(numbers.tolist(), held.tolist(), strict=True):
        chain: Chain = ()
        text: tuple[str, ...] = ()
        if number != NO_STACK:
            chain = tuple(_link(frame, known) for frame in stacks[number])
            text = stack_text(stacks, number)
        text, sum_ = found.get(chain, (text, 0))
        found[chain] = text, sum_ + count
    return found


def _link(frame: Frame, known: Callable[[Location], object]) -> object:
    """A frame as it is the same in both recordings: torch's own without its line, which moves with every release."""
    if is_script(frame):
        return known(Location(frame.filename, frame.line, frame.name))
    return package_path(frame.filename) or frame.filename.rpartition("/")[2], frame.name
