"""The lines of code of one recording, and what stands around each in its stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from oomscope.analysis.attribution.sites import is_script
from oomscope.analysis.records import Location
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray, Snapshot, StackTable

_PASSED_ON = frozenset({"_call_impl", "_wrapped_call_impl", "__call__", "wrapper", "decorate_context"})
"""Between a line and what it calls, these say nothing."""
_NONE: frozenset[str] = frozenset()


@frozen
class Surroundings:
    """What stands beside a line in stacks: the functions from which it is reached, and those that it calls."""

    callers: frozenset[str] = _NONE
    called: frozenset[str] = _NONE


NOTHING_AROUND = Surroundings()


@frozen
class CodePlaces:
    """The lines of a program that occur in its recording: the program's own and its libraries', none of torch.

    Attributes:
        around: what stands beside each line.
        text: the source of those lines that the dump carries.
    """

    around: Mapping[Location, Surroundings]
    text: Mapping[Location, str] = field(default_factory=dict)

    @property
    def locations(self) -> tuple[Location, ...]:
        """All lines, by file, function and line."""
        return tuple(sorted(self.around, key=order))


def order(location: Location) -> tuple[str, str, int]:
    """How locations are sorted."""
    return (location.file, location.function, location.line)


def find_places(snapshot: Snapshot) -> CodePlaces:
    """The places of the stacks of `snapshot`."""
    around = _around(snapshot.stacks)
    lines = {
        (source.filename, source.line): source.text[source.line - source.first].strip()
        for source in snapshot.recorded.sources
        if 0 <= source.line - source.first < len(source.text)
    }
    text = {one: lines[one.file, one.line] for one in around if lines.get((one.file, one.line))}
    return CodePlaces(around, text)


def _around(stacks: StackTable) -> dict[Location, Surroundings]:
    frames = stacks.frames
    script = np.fromiter((is_script(frame) for frame in frames), bool, count=len(frames))
    passed = np.fromiter((frame.name in _PASSED_ON for frame in frames), bool, count=len(frames))
    callers: dict[Location, set[str]] = defaultdict(set)
    called: dict[Location, set[str]] = defaultdict(set)
    at = np.flatnonzero(script[stacks.members]) if len(stacks.members) else np.zeros(0, np.int64)
    stack = np.searchsorted(stacks.offsets, at, side="right") - 1
    inward = _nearest_inward(stacks, at, stack, passed)
    outward = np.where((stack[:-1] == stack[1:]), at[1:], -1) if len(at) else at
    outward = np.append(outward, -1) if len(at) else outward
    for member, inner, outer in _distinct(stacks, at, inward, outward):
        frame = frames[member]
        location = Location(frame.filename, frame.line, frame.name)
        if inner >= 0:
            called[location].add(frames[inner].name)
        if outer >= 0:
            callers[location].add(frames[outer].name)
        called.setdefault(location, set())
    return {one: Surroundings(frozenset(callers.get(one, _NONE)), frozenset(inner)) for one, inner in called.items()}


def _nearest_inward(stacks: StackTable, at: IntArray, stack: IntArray, passed: BoolArray) -> IntArray:
    """For each position `at`, the next one inwards in the same stack that says something; -1 where there is none."""
    telling = np.flatnonzero(~passed[stacks.members])
    if not len(telling):
        return np.full(len(at), -1, np.int64)
    before = np.searchsorted(telling, at) - 1
    found = np.where(before >= 0, telling[np.maximum(before, 0)], -1)
    return np.where(found >= stacks.offsets[stack], found, -1)


def _distinct(stacks: StackTable, at: IntArray, inward: IntArray, outward: IntArray) -> list[tuple[int, int, int]]:
    """The distinct (frame, frame inwards, frame outwards) as numbers of frames; -1 for none."""
    if not len(at):
        return []
    members = stacks.members.astype(np.int64)

    def frame(position: IntArray) -> IntArray:
        return np.where(position >= 0, members[np.maximum(position, 0)], -1)

    triples = np.stack([members[at], frame(inward), frame(outward)], axis=1)
    return [(int(a), int(b), int(c)) for a, b, c in np.unique(triples, axis=0)]
