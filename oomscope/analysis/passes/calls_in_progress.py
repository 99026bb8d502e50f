"""Calls of one function by several threads that were underway at the same time.

One thread finishes a call before it begins the next. Where a trace has more beginnings than ends, calls overlap: what
they hold is needed at once, and no generations of one loop.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.passes.script_stacks import THREAD
from oomscope.analysis.records import CallsInProgress
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, IntArray

LEAST_AT_ONCE = 2


def find_calls_in_progress(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    """The functions that threads of the program were in more than once at `entry`, most calls first.

    Told from the trace alone: a call begins where its first line allocates, and has ended once its last line has.
    """
    return study.once(("calls in progress", entry), lambda: _find(study, entry))


def _find(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    trace, script = study.history.trace, study.loops.script
    events = trace.entries(Action.ALLOC)
    events = events[(events <= entry) & (trace.stack[events] >= 0)]
    stack = trace.stack[events]
    stack = stack[script.thread[stack] == THREAD]
    paths = [script.paths[number] for number in script.path_of[stack].tolist()]
    root = np.array([path[0] if path and path[0] >= 0 else -1 for path in paths], np.int64)
    function = np.where(root >= 0, script.function[root], -1) if len(root) else root
    found = []
    for number in np.unique(function[function >= 0]).tolist():
        mine = function == number
        calls = _begun(stack[mine]) - _ended(stack[mine])
        if calls >= LEAST_AT_ONCE:
            frame = script.frames[int(root[mine].min())]
            line = int(script.line[np.unique(root[mine])].min())
            found.append(CallsInProgress(frame.name, frame.filename, line, calls))
    return tuple(sorted(found, key=lambda one: -one.calls))


def _begun(stack: IntArray) -> int:
    """How often the allocation came that came first of all."""
    return int(np.count_nonzero(stack == stack[0]))


def _ended(stack: IntArray) -> int:
    """How often the allocation came that a call makes last: of all stacks the one that was first seen last."""
    stacks, first = np.unique(stack, return_index=True)
    last = stacks[np.argmax(first)]
    return int(np.count_nonzero(stack == last)) if last != stack[0] else len(stack)
