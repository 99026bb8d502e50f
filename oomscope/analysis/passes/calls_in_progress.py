"""Calls of one function, by several threads or tasks, that were underway at the same time.

One thread finishes a call before it begins the next. Where a trace has more beginnings than ends, calls overlap: what
they hold is needed at once, and no generations of one loop.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.records import CallsInProgress
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, IntArray

LEAST_AT_ONCE = 2
LEAST_OF_CALLS = 0.25
"""Of the calls begun: how often a line must have allocated to be one that every call comes to, and not a rare case."""


def find_calls_in_progress(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    """The functions that threads and tasks of the program were in more than once at `entry`, most calls first.

    Told from the trace alone: a call begins where its first line allocates, and has ended once its last line has.
    """
    return study.once(("calls in progress", entry), lambda: _find(study, entry))


def _find(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    trace, script = study.history.trace, study.loops.script
    events = trace.entries(Action.ALLOC)
    events = events[(events <= entry) & (trace.stack[events] >= 0)]
    stack = trace.stack[events]
    stack = stack[script.task[stack] >= 0]
    function = script.function[script.task[stack]]
    found = []
    for number in np.unique(function).tolist():
        mine = function == number
        calls = _underway(stack[mine])
        if calls >= LEAST_AT_ONCE:
            places = np.unique(script.task[stack[mine]])
            first = script.frames[int(places[np.argmin(script.line[places])])]
            found.append(CallsInProgress(first.name, first.filename, first.line, calls))
    return tuple(sorted(found, key=lambda one: -one.calls))


def _underway(stack: IntArray) -> int:
    """How many calls have begun and not ended.

    The stack that came first of all begins a call. Of the stacks that calls come to as a rule, the one that was first
    seen last ends it. It may come more than once in a call: as often as the two stood to each other when most had ended.
    """
    begins = np.cumsum(stack == stack[0])
    stacks, first, count = np.unique(stack, return_index=True, return_counts=True)
    usual = count >= LEAST_OF_CALLS * begins[-1]
    last = stacks[usual][np.argmax(first[usual])]
    if last == stack[0]:
        return 0
    ends = np.cumsum(stack == last)
    each = max(round(float((ends / begins).max())), 1)
    return int(begins[-1]) - round(int(ends[-1]) / each)
