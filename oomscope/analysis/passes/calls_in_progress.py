"""Calls of one function, by several threads or tasks, that were underway at the same time.

One thread finishes a call before it begins the next. Where a trace has more beginnings than ends, calls overlap: what
they hold is needed at once, and no generations of one loop.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from oomscope.analysis.attribution.sites import is_readers_frame
from oomscope.analysis.passes.records import CallsInProgress
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, IntArray
from oomscope.model.ordering import ascending

LEAST_AT_ONCE = 2
"""Calls; one alone is not at the same time as another."""
LEAST_CAUGHT_UP = 0.1
"""Of the calls begun: how many a line must have caught up with at some time, to be one that ends every call.

A line that calls come to rarely falls behind from the start."""
LEAST_IN_TURN = 3
"""Calls that have come to a line, each after as many beginnings, before it tells that they come one after another."""
LEAST_OF_CALLS = 0.25
"""Of the calls begun: how many must have come to a line for it to tell how far they are, where none has ended yet."""

MOST_OF_ALL = 0.95
"""Of the most often that calls have come to a line, each on average: the average falls where others begin."""


def find_calls_in_progress(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    """The functions that threads and tasks of the program were in more than once at `entry`, most calls first.

    Told from the trace alone: a call begins where its first line allocates, and has ended once its last line has.
    """
    return study.once(("calls in progress", entry), lambda: _find(study, entry))


def recorded_calls(study: DeviceStudy) -> tuple[CallsInProgress, ...]:
    """How many threads were in each function at the last failure, as the recording saw it; one thread counts, too.

    A thread is in the outermost function of the reader's on its stack; the main thread is left out.
    """
    counted: Counter[Location] = Counter()
    for thread in study.snapshot.recorded.stacks.threads:
        own = [frame for frame in thread.frames if is_readers_frame(frame)]
        if own and not thread.main:
            counted[Location(*own[-1][:3])] += 1
    functions: Counter[tuple[str, str]] = Counter()
    for place, count in counted.items():
        functions[place.file, place.function] += count
    line = {(place.file, place.function): place.line for place in counted}
    return tuple(
        CallsInProgress(function, file, line[file, function], count)
        for (file, function), count in functions.most_common()
    )


def _find(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    trace, script = study.history.trace, study.loops.script
    events = trace.entries(Action.ALLOC)
    events = events[(events <= entry) & (trace.stack[events] >= 0)]
    stack = trace.stack[events]
    stack = stack[script.task[stack] >= 0]
    function = script.function[script.task[stack]]
    found = []
    for number in ascending(function).tolist():
        mine = function == number
        calls = _underway(stack[mine])
        if calls >= LEAST_AT_ONCE:
            places = ascending(script.task[stack[mine]])
            first = script.frames[int(places[np.argmin(script.line[places])])]
            found.append(CallsInProgress(first.name, first.filename, first.line, calls))
    return tuple(sorted(found, key=lambda one: -one.calls))


def _underway(stack: IntArray) -> int:
    """How many calls have begun and not ended.

    The stack that came first of all begins a call. Of those that every call comes to, the one that was first seen last
    ends it: whenever nothing is underway, it has caught up with the beginnings. Where that one is of a loop that the
    calls are still in, the most that were underway at any time still are.
    """
    begins = np.cumsum(stack == stack[0])
    stacks, first, count = np.unique(stack, return_index=True, return_counts=True)
    stacks, count = stacks[np.argsort(first)][1:], count[np.argsort(first)][1:]
    if any(_one_at_a_time(stack, begins, one) for one in stacks[count >= LEAST_IN_TURN].tolist()):
        return 1
    behind = [_behind(stack, begins, one) for one in stacks.tolist()]
    caught_up = np.array([begins[lag <= 0].max(initial=0) for lag in behind], np.int64)
    telling = caught_up >= max(LEAST_CAUGHT_UP * begins[-1], LEAST_AT_ONCE)
    if not telling.any():
        telling = count >= LEAST_OF_CALLS * begins[-1]
    if not telling.any():
        return 0
    last = int(np.flatnonzero(telling)[-1])
    if count[last] > begins[-1] and _still_comes(stack, begins, int(stacks[last])):
        once = [lag for lag, times in zip(behind, (caught_up > 0) & (count <= begins[-1]), strict=True) if times]
        return min(int(max((lag.max() for lag in once), default=0)), int(begins[-1]))
    return int(behind[last][-1])


def _still_comes(stack: IntArray, begins: IntArray, last: int) -> bool:
    """Whether calls have never come to `last` as often as by now: nothing tells how often one comes there in all."""
    ratio = np.cumsum(stack == last) / begins
    return bool(ratio[-1] > MOST_OF_ALL * ratio.max())


def _one_at_a_time(stack: IntArray, begins: IntArray, last: int) -> bool:
    """Whether each call comes to `last` once, and begins several times by its first line, such as for every layer.

    Calls that overlap would mix their beginnings: not always the same number of them goes before.
    """
    before = begins[stack == last]
    each = int(before[0])
    return each > 1 and bool(np.all(before == each * np.arange(1, len(before) + 1)))


def _behind(stack: IntArray, begins: IntArray, last: int) -> IntArray:
    """By how many calls the stack `last` is behind the beginnings, after each allocation.

    It may come more than once in a call: as often as the two were related when most had ended.
    """
    ends = np.cumsum(stack == last)
    return np.asarray(begins - np.round(ends / max(round(float((ends / begins).max())), 1)).astype(np.int64))
