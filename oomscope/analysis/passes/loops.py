"""The loops of a program and their passes, told from the line numbers of its stacks.

Within one call of a function the line of its frame only moves forward. Where it comes back to a line that it has left,
a new pass of a loop has begun. `loop_finder` finds them; here is what can be asked of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from oomscope.analysis.labels.stack_roles import Role, StackRoles
from oomscope.analysis.passes.loop_bodies import LoopBodies
from oomscope.analysis.passes.loop_finder import FoundRun, LoopFinder
from oomscope.analysis.passes.script_stacks import MAIN, THREAD, ScriptStacks
from oomscope.analysis.records import Location
from oomscope.frozen import frozen
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import Action, BoolArray, IntArray
from oomscope.model.ordering import places


@frozen(eq=False)
class LoopRun:
    """One run of a loop, from its first pass to its last.

    Attributes:
        loop: which loop; runs of one loop share it.
        begin: the entry at which its first pass begins.
        end: the first entry of the script that is no longer part of it; the number of entries where there is none.
        starts: int64[passes], the entries at which its passes begin, ascending.
        parent: the run around it, -1 for none.
        certain: False where a loop within a Module's forward looks the same.
        thread: whether it runs in threads that the program started.
        one_line: whether each pass is one allocation of one line, such as in a comprehension.
    """

    loop: int
    begin: int
    end: int
    starts: IntArray
    parent: int
    certain: bool
    thread: bool
    one_line: bool

    def is_running(self, entry: int) -> bool:
        """Whether a pass of it is in progress at `entry`."""
        return self.begin <= entry < self.end

    def completed(self, entry: int) -> int:
        """How many of its passes have finished by `entry`."""
        begun = int(np.searchsorted(self.starts, entry, side="right"))
        return begun - 1 if self.is_running(entry) else begun


class Loops:
    """All loops of the script on one device."""

    def __init__(
        self, history: DeviceHistory, script: ScriptStacks, roles: StackRoles, bodies: LoopBodies | None = None
    ) -> None:
        self.script, self._bodies = script, bodies
        self.entries = history.entries
        self.runs: list[LoopRun] = []
        self._places: list[int] = []
        self._events: dict[bool, IntArray] = {}
        self._innermost: dict[bool, IntArray] = {}
        trace = history.trace
        events = trace.entries(Action.ALLOC, Action.OOM)
        events = events[trace.stack[events] >= 0]
        stack = trace.stack[events]
        self._midway = bool((history.lifetimes.born == BEFORE).any())
        for thread in (False, True):
            mine = script.thread[stack] == (THREAD if thread else MAIN)
            self._add(events[mine], stack[mine], roles.role[stack[mine]] == Role.LOAD, thread)

    def _add(self, events: IntArray, stack: IntArray, loads: BoolArray, thread: bool) -> None:
        # What makes or moves a model goes through its layers: where it was called tells, and no loop below.
        path = np.where(loads, self.script.maker_of[stack], self.script.path_of[stack])
        first = ~loads | np.append(True, (path[1:] != path[:-1]) | ~loads[:-1])[: len(path)]
        events, stack, path, loads = events[first], stack[first], path[first], loads[first]
        finder = LoopFinder(self.script, stack, path, midway=self._midway, bodies=self._bodies)
        if finder.calls_again and finder.straight:
            # What one call of a Module runs straight through is no loop within it elsewhere: it is called again.
            finder = LoopFinder(
                self.script, stack, path, midway=self._midway, straight=finder.straight, bodies=self._bodies
            )
        known = len(self._places)
        self._places += finder.places
        after = np.append(events, self.entries)
        innermost = np.full(len(events), -1, np.int64)
        numbers = {-1: -1}
        for number, found in enumerate(finder.runs):
            if loads[found.begin : found.end].all():
                continue  # over the layers of a model, or over models
            numbers[number] = len(self.runs)
            self.runs.append(_run(found, after, numbers[found.parent], known, thread))
            if found.certain:
                innermost[found.begin : found.end] = numbers[number]
        self._events[thread], self._innermost[thread] = events, innermost

    def location(self, run: LoopRun) -> Location:
        """Where the loop is: the first line of its body that allocates, or its only line."""
        frame = self.script.frames[self._places[run.loop]]
        return Location(frame.filename, frame.line, frame.name)

    def script_line(self, stack: int) -> Location | None:
        """The line of the script that a stack was made for: the last before it goes into a Module, or into torch."""
        lines = self.script.lines_on(self.script.paths[int(self.script.path_of[stack])])
        if not lines:
            return None
        frame = self.script.frames[lines[-1]]
        return Location(frame.filename, frame.line, frame.name)

    def line_within(self, run: LoopRun, stack: int) -> Location | None:
        """The line of the function that loops which led to a stack, where it did; else the `script_line`."""
        loop = self.script.frames[self._places[run.loop]]
        for place in self.script.lines_on(self.script.paths[int(self.script.path_of[stack])]):
            frame = self.script.frames[place]
            if (frame.filename, frame.name) == (loop.filename, loop.name):
                return Location(frame.filename, frame.line, frame.name)
        return self.script_line(stack)

    def is_thread(self, stack: int) -> bool:
        """Whether a stack belongs to a thread that the program started."""
        return bool(self.script.thread[stack] == THREAD)

    def around(self, entries: IntArray, thread: BoolArray | None = None) -> IntArray:
        """The innermost certain run around each of `entries`, -1 for none.

        Args:
            entries: int64[…].
            thread: bool[…], which of them happened in a thread of the program; None for none of them.
        """
        found = self._around(entries, False)
        if thread is not None and thread.any():
            found = np.where(thread, self._around(entries, True), found)
        return found

    def _around(self, entries: IntArray, thread: bool) -> IntArray:
        events = self._events[thread]
        if not len(events):
            return np.full(len(entries), -1, np.int64)
        at = places(events, entries, "right") - 1
        return np.where(at >= 0, self._innermost[thread][np.maximum(at, 0)], -1)

    def chain(self, number: int) -> Iterator[int]:
        """The run with `number` and those around it, innermost first."""
        while number >= 0:
            yield number
            number = self.runs[number].parent

    def running(self, entry: int, *, thread: bool = False) -> tuple[int, ...]:
        """The certain runs in progress at `entry`, outermost first."""
        (innermost,) = self._around(np.array([entry]), thread).tolist()
        return tuple(one for one in self.chain(innermost) if self.runs[one].certain)[::-1]

    @property
    def is_known(self) -> bool:
        """Whether there are stacks of a script at all; else nothing is known of its loops."""
        return any(len(events) for events in self._events.values())

    def share(self, loop: int) -> float:
        """The part of the script's allocations that lies in a loop, from its first run to its last."""
        runs = self.runs_of(loop)
        events = self._events[runs[0].thread]
        first, last = np.searchsorted(events, [runs[0].begin, runs[-1].end])
        return float(last - first) / max(len(events), 1)

    def runs_of(self, loop: int) -> tuple[LoopRun, ...]:
        """All runs of a loop, first to last."""
        return self._by_loop[loop]

    @cached_property
    def _by_loop(self) -> dict[int, tuple[LoopRun, ...]]:
        found: dict[int, list[LoopRun]] = defaultdict(list)
        for run in self.runs:
            found[run.loop].append(run)
        return {loop: tuple(runs) for loop, runs in found.items()}


def _run(found: FoundRun, after: IntArray, parent: int, known: int, thread: bool) -> LoopRun:
    return LoopRun(
        loop=known + found.loop,
        begin=int(after[found.begin]),
        end=int(after[found.end]),
        starts=after[np.array(found.starts, np.int64)],
        parent=parent,
        certain=found.certain,
        thread=thread,
        one_line=found.one_line,
    )
