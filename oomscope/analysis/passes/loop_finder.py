"""Finds the passes of loops in the order in which a script's lines allocate.

A call of one function is a sequence of lines. What is never come back to is straight code; the rest is a loop, whose
passes are cut where its first line comes again after its last one. Each pass may hold further loops, found likewise,
and each line the calls of further functions. One line can hold a loop as well: it calls the same functions in the
same order again.

A call that is written on several lines evaluates its arguments first and then goes back to its own line. That alone is
no loop: lines must come again.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from oomscope.analysis.passes.loop_bodies import LoopBodies
from oomscope.analysis.passes.script_stacks import MODULE, ScriptStacks
from oomscope.model import IntArray

LEAST_ON_ONE_LINE = 16
"""Allocations of one line with one stack. An expression makes a few tensors; no one writes sixteen on a line."""
LEAST_LINES = 3
"""Lines of a first pass from which on one line that comes back makes a second; fewer may be one expression's lines."""
NEARLY_EACH = 0.75
"""Of the passes in which a loop's lines run: what runs in fewer stands in a condition."""
LEAST_ALIKE = 3
"""Different paths that a line goes through again in the same order: an argument and the call that takes it do not."""
LONGEST_EXPRESSION = 20
"""Lines from the first to the last that one expression spans at most."""
LEAST_SHARED = 2
"""Lines that two passes share, where there are only two."""
_DEEPEST = 16
"""Loops within loops; a program with more has defeated the rules, not written such a nest."""
_DIRECT = -2
"""Stands where a path ends: the line itself allocates."""


@dataclass(slots=True)
class FoundRun:
    """One run of a loop; the numbers are those of events.

    Attributes:
        loop: which loop.
        begin: its first event.
        end: the event after its last.
        starts: the events at which its passes begin.
        parent: the run around it, -1 for none.
        certain: False where a loop within a Module's forward looks the same.
        one_line: whether each pass is one allocation of one line.
    """

    loop: int
    begin: int
    end: int
    starts: Sequence[int]
    parent: int
    certain: bool
    one_line: bool = False


class _Group(NamedTuple):
    """Neighbouring stretches with the same frame at some depth: stretches ``low`` to ``high`` (exclusive)."""

    token: int
    low: int
    high: int


class LoopFinder:
    """All loops in one sequence of events.

    Attributes:
        runs: outer ones before the ones within.
        places: the location of each loop.
        straight: lines, by function, that some call of a Module ran one after the other, and none of them again.
        calls_again: whether lines came again below a Module's call, of which that call may be the loop's body.
    """

    def __init__(
        self,
        script: ScriptStacks,
        stack: IntArray,
        path: IntArray,
        *,
        midway: bool = False,
        straight: Mapping[int, Set[int]] = MappingProxyType({}),
        bodies: LoopBodies | None = None,
    ) -> None:
        """Find them.

        Args:
            script: of the snapshot's stacks.
            stack: int64[events], the stack of each allocation of one thread, in order.
            path: int64[events], which of the script's paths each was made by.
            midway: whether the program ran before the first event, so that it may lie within a pass.
            straight: of functions that a Module's call runs, lines that are known to be no loop within the call.
            bodies: tells which lines are one loop's body, where their text is known.
        """
        self.straight: dict[int, set[int]] = {}
        self.calls_again = False
        self._known_straight = straight
        self._bodies = bodies or LoopBodies()
        self.runs: list[FoundRun] = []
        self.places: list[int] = []
        self._depths: list[int] = []
        self._script, self._stack, self._midway = script, stack, midway
        self._line, self._function = script.line.tolist(), script.function.tolist()
        self._is_script = script.is_script.tolist()
        self._loops: dict[Hashable, list[tuple[int, int, int]]] = {}
        # A stretch is as long as the path stays the same.
        first = np.flatnonzero(np.append(True, path[1:] != path[:-1])) if len(path) else path
        self._first = [*first.tolist(), len(stack)]
        self._path = path[first].tolist() if len(path) else []
        self._paths = [script.paths[number] for number in self._path]
        if len(path):
            again = stack == np.repeat(stack[first], np.diff(self._first))
            self._again = np.add.reduceat(again.astype(np.int64), first).tolist()
            self._walk(0, len(first), 0, -1, 0)

    def _walk(self, low: int, high: int, depth: int, parent: int, nest: int) -> None:
        """Find the loops among stretches that share their frames above `depth`."""
        while high - low > 1:
            groups = self._groups(low, high, depth)
            if len(groups) > 1:
                self._segments(groups, depth, parent, nest)
                return
            depth += 1
        self._leaf(low, parent)

    def _groups(self, low: int, high: int, depth: int) -> list[_Group]:
        found: list[_Group] = []
        begin, token = low, self._token(low, depth)
        for number in range(low + 1, high):
            other = self._token(number, depth)
            if other != token:
                found.append(_Group(token, begin, number))
                begin, token = number, other
        found.append(_Group(token, begin, high))
        return found

    def _token(self, number: int, depth: int) -> int:
        path = self._paths[number]
        return path[depth] if depth < len(path) else _DIRECT

    def _segments(self, groups: list[_Group], depth: int, parent: int, nest: int) -> None:
        """Cut what one call does where nothing before it comes back after it."""
        below = depth > 0 and self._token(groups[0].low, depth - 1) == MODULE
        keys = self._keys(groups)
        least = keys[:]
        for number in range(len(keys) - 2, -1, -1):
            least[number] = min(least[number], least[number + 1])
        if below and len(set(keys)) == len(keys):
            self._note_straight(groups)
        begin, most = 0, keys[0]
        for number in range(1, len(groups) + 1):
            if number < len(groups) and most >= least[number]:
                most = max(most, keys[number])
                continue
            is_whole = begin == 0 and number == len(groups)
            if number - begin == 1 and not below:
                self._walk(groups[begin].low, groups[begin].high, depth + 1, parent, nest)
            elif number - begin > 1 and (is_whole or not below):
                self._loop(groups[begin:number], keys[begin:number], depth, parent, nest, below=below)
            if number < len(groups):
                begin, most = number, keys[number]

    def _note_straight(self, groups: list[_Group]) -> None:
        functions = {self._function[group.token] for group in groups if group.token >= 0}
        if len(functions) == 1:
            self.straight.setdefault(functions.pop(), set()).update(group.token for group in groups)

    def _is_called_again(self, groups: list[_Group]) -> bool:
        """Whether lines below a Module's call come again that another call of it ran just once: it is called again."""
        self.calls_again = True
        tokens = {group.token for group in groups}
        known = self._known_straight.get(self._function[groups[0].token], set()) if groups[0].token >= 0 else set()
        return len(tokens) > 1 and tokens <= known

    def _keys(self, groups: list[_Group]) -> list[tuple[int, int]]:
        """What orders lines: functions by their first call, then lines."""
        rank: dict[int, int] = {}
        keys = []
        for token, _, _ in groups:
            function = self._function[token] if token >= 0 else token
            keys.append((rank.setdefault(function, len(rank)), self._line[token] if token >= 0 else 0))
        return keys

    def _loop(
        self, groups: list[_Group], keys: list[tuple[int, int]], depth: int, parent: int, nest: int, *, below: bool
    ) -> None:
        """Record the loop that `groups` make, and find those in its passes."""
        paths, is_first = [self._path[group.low] for group in groups], groups[0].low == 0
        one_body = not below and self._is_one_body(groups)
        alike = not below and groups[0].token == groups[-1].token and self._is_done_again(groups)
        starts = pass_starts(keys, paths, midway=self._midway and is_first, one_body=one_body, alike=alike)
        if not starts or nest == _DEEPEST:
            if not below:
                for group in groups:
                    self._walk(group.low, group.high, depth + 1, parent, nest)
            return
        again = below and self._is_called_again(groups)
        events = [self._first[groups[start].low] for start in starts]
        end = self._first[groups[-1].high]
        loop = self._number(groups, keys, depth, parent, below=below)
        if loop < 0 or (below and parent >= 0 and not again):
            return
        self.runs.append(FoundRun(loop, events[0], end, events, parent, not below or again))
        self._depths.append(depth)
        if below:
            return
        number = len(self.runs) - 1
        for begin, after in zip(starts, [*starts[1:], len(groups)], strict=True):
            inner = groups[begin:after]
            if len(inner) > 1:
                self._segments(inner, depth, number, nest + 1)
            else:
                self._walk(inner[0].low, inner[0].high, depth + 1, number, nest + 1)

    def _is_done_again(self, groups: list[_Group]) -> bool:
        """Whether the first line, to which the last has come back, is no expression on several lines.

        It is known to be a statement, or does at length what it has begun with, as no argument of a call does.
        """
        first, last = groups[0], groups[-1]
        if first.token >= 0 and self._bodies.is_statement(
            self._script.frames[first.token].filename, self._line[first.token]
        ):
            return True
        pairs = zip(self._path[first.low : first.high], self._path[last.low : last.high], strict=False)
        common = itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)
        return len(dict.fromkeys(common)) >= LEAST_ALIKE

    def _is_one_body(self, groups: list[_Group]) -> bool:
        """Whether all lines are known to be those of one loop of one function."""
        tokens = {group.token for group in groups}
        if min(tokens) < 0 or len({self._function[token] for token in tokens}) > 1:
            return False
        return self._bodies.hold(self._script.frames[min(tokens)].filename, [self._line[token] for token in tokens])

    def _number(
        self, groups: list[_Group], keys: list[tuple[int, int]], depth: int, parent: int, *, below: bool
    ) -> int:
        """The number of the loop that `groups` make; loops of one call and level whose lines overlap are one."""
        prefix = self._paths[groups[0].low][:depth]
        level = self._level(parent, depth)
        functions = {key[0] for key in keys}
        tokens = [group.token for group in groups]
        if len(functions) == 1 and not below and tokens[0] >= 0 and self._is_script[tokens[0]]:
            lowest = min(tokens, key=self._line.__getitem__)
            lines = [key[1] for key in keys]
            place = self._looping(prefix, lowest)
            return self._known((prefix, level, self._function[lowest]), min(lines), max(lines), place)
        place = self._place(prefix, tokens[0])
        return self._known((prefix, level, below), 0, 0, place) if place >= 0 else -1

    def _looping(self, prefix: tuple[int, ...], lowest: int) -> int:
        """The line that loops: the first of the body, or that which calls its function again, if that has no loop."""
        frame = self._script.frames[lowest]
        callers = [token for token in prefix if token >= 0 and self._is_script[token]]
        if callers and self._bodies.is_straight(frame.filename, frame.line):
            return callers[-1]
        return lowest

    def _level(self, parent: int, depth: int) -> int:
        """How many loops of the same call are around."""
        level = 0
        while parent >= 0 and self._depths[parent] == depth:
            level, parent = level + 1, self.runs[parent].parent
        return level

    def _place(self, path: tuple[int, ...], otherwise: int = -1) -> int:
        """The innermost line of the script in `path`, outside any Module's call."""
        outside = path[: path.index(MODULE)] if MODULE in path else path
        return next((token for token in reversed(outside) if token >= 0 and self._is_script[token]), max(otherwise, -1))

    def _known(self, key: Hashable, low: int, high: int, place: int) -> int:
        same = self._loops.setdefault(key, [])
        for index, (begin, end, loop) in enumerate(same):
            if low <= end and begin <= high:
                same[index] = (min(begin, low), max(end, high), loop)
                return loop
        same.append((low, high, len(self.places)))
        self.places.append(place)
        return len(self.places) - 1

    def _leaf(self, number: int, parent: int) -> None:
        """A loop on one line: in the script itself, or around the call of a Module that is called again."""
        path, low, high = self._paths[number], self._first[number], self._first[number + 1]
        below = MODULE in path
        if self._again[number] < (2 if below else LEAST_ON_ONE_LINE) or (below and parent >= 0):
            return
        stack = self._stack[low:high]
        if not below and not self._script.alone[stack].all():
            return
        same = stack == stack[0]
        starts = np.flatnonzero(same if same.all() else same & ~np.append(False, same[:-1])) + low
        if len(starts) > 1 and (place := self._place(path)) >= 0:
            loop = self._known((path, "line"), 0, 0, place)
            self.runs.append(FoundRun(loop, low, high, starts.tolist(), parent, not below, one_line=True))
            self._depths.append(len(path))


def pass_starts(
    keys: Sequence[tuple[int, int]],
    paths: Sequence[int],
    *,
    midway: bool = False,
    one_body: bool = False,
    alike: bool = False,
) -> list[int]:
    """Where, in lines that come back, the passes of the outermost loop begin; empty where there is none.

    Args:
        keys: what orders the lines, in the order in which they were run; neighbours differ.
        paths: what each line calls first.
        midway: whether the first line may lie within a pass that began before.
        one_body: whether the lines are known to be of one loop, so that its last line need not be in each pass.
        alike: whether the last line does at length what the first has begun with.
    """
    count = Counter(keys)
    again = [key for key, times in count.items() if times > 1]
    if not again:
        return []
    last, lowest = max(again), min(again)
    if one_body and len(again) > 1:
        most = max(count[key] for key in again if key != lowest)
        last = max(key for key in again if key != lowest and count[key] >= NEARLY_EACH * most)
    starts = _alternations(keys, lowest, last)
    if keys[0] in again and keys[0] != lowest and not midway:
        # A call on several lines goes back to its own line last; the pass begins with its first argument.
        from_first = _alternations(keys, keys[0], last)
        starts = from_first if len(from_first) >= len(starts) else starts
    starts = [_with_first_lines(keys, start, count) for start in starts]
    if not starts or starts[0] == 0 or (len(starts) == 1 and not (alike or _repeats(keys, paths, starts[0]))):
        return []
    return [0, *starts]


def _with_first_lines(keys: Sequence[tuple[int, int]], start: int, count: Counter[tuple[int, int]]) -> int:
    """Where a pass begins whose line at `start` comes again: lines just above, run this time alone, belong to it."""
    while start > 0 and keys[start - 1] < keys[start] and count[keys[start - 1]] == 1:
        start -= 1
    return start


def _alternations(keys: Sequence[tuple[int, int]], head: tuple[int, int], last: tuple[int, int]) -> list[int]:
    """Where `head` comes after `last` has come."""
    found, seen = [], False
    for number, key in enumerate(keys):
        if key == head and (seen or (head == last and number > 0)):
            found.append(number)
            seen = False
        if key == last:
            seen = True
    return found


def _repeats(keys: Sequence[tuple[int, int]], paths: Sequence[int], second: int) -> bool:
    """Whether what begins at `second` does what was done before it, and is no expression on several lines."""
    before, after = set(keys[:second]), set(keys[second:])
    shared = len(before & after)
    same = not set(paths[:second]).isdisjoint(paths[second:])
    far_apart = max(before)[0] == min(before)[0] and max(before)[1] - min(before)[1] > LONGEST_EXPRESSION
    return same and (shared >= LEAST_SHARED or (shared > 0 and (len(before) >= LEAST_LINES or far_apart)))
