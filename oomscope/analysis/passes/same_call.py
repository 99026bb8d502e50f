"""What the last call of the function that runs the model went on to need, from the request that fails this time.

A validation before training and those after each epoch are runs of one function that different lines call: no loop
holds them all. The function does the same each time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.passes.same_places import SAME
from oomscope.analysis.passes.script_stacks import MODULE, OTHER, ScriptStacks
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, BoolArray


class LastCall(NamedTuple):
    """The last finished call of `function`.

    `needed`: bytes beyond what was allocated when it made the request that fails this time.
    """

    function: str
    needed: int


def find_last_call(study: DeviceStudy, entry: int) -> LastCall | None:
    """The last finished call, before the one underway at `entry`, of the function that runs the model.

    None where no Module is called there, where no call before has come there with as large a request, or where that one
    failed.

    Args:
        study: of the device.
        entry: of a request; the one of the last call is the first, the second, … of its kind as this one is.
    """
    script, trace = study.loops.script, study.history.trace
    stack = int(trace.stack[entry])
    caller = None if stack < 0 or script.thread[stack] == OTHER else _caller(script, stack)
    if caller is None:
        return None
    events = trace.entries(Action.ALLOC, Action.OOM)
    events = events[(events <= entry) & (trace.stack[events] >= 0)]
    events = events[script.thread[trace.stack[events]] == script.thread[stack]]
    within = _in_function(script, int(script.function[caller]))[trace.stack[events]]
    begins = np.flatnonzero(within & ~np.append(False, within[:-1]))
    ends = np.append(np.flatnonzero(~within[1:] & within[:-1]) + 1, len(events))
    alike = np.flatnonzero(_alike(study, stack, caller)[trace.stack[events]])
    *earlier, now = zip(begins.tolist(), ends.tolist(), strict=True)
    nth, size = int(np.count_nonzero(alike >= now[0])) - 1, int(trace.size[entry])
    for begin, end in reversed(earlier):
        same = events[alike[(alike >= begin) & (alike < end)]]
        if nth < len(same) and abs(int(trace.size[same[nth]]) - size) <= SAME * size:
            needed = _needed(study, int(same[nth]), int(events[end]))
            return None if needed is None else LastCall(script.frames[caller].name, needed)
    return None


def _needed(study: DeviceStudy, request: int, end: int) -> int | None:
    if (study.history.trace.action[request:end] == Action.OOM).any():
        return None
    allocated = study.history.curves.allocated
    return int(allocated[request : end + 1].max()) - int(allocated[request])


def _caller(script: ScriptStacks, stack: int) -> int | None:
    """The script's line that calls the outermost Module; None where none is called."""
    path = script.paths[int(script.path_of[stack])]
    lines = script.lines_on(path) if MODULE in path else ()
    return lines[-1] if lines else None


def _in_function(script: ScriptStacks, function: int) -> BoolArray:
    """bool[stacks]: whether a stack goes through a function of the script."""
    through = [any(script.function[place] == function for place in script.lines_on(path)) for path in script.paths]
    return np.array(through, np.bool_)[script.path_of]


def _alike(study: DeviceStudy, stack: int, caller: int) -> BoolArray:
    """bool[stacks]: whether it is the same from the caller's line inwards, whoever has called that."""
    stacks, frame = study.snapshot.stacks, study.loops.script.frames[caller]
    at = (frame.filename, frame.line, frame.name)
    is_caller = np.array([(one.filename, one.line, one.name) == at for one in stacks.frames], np.bool_)
    mine = stacks.members[stacks.offsets[stack] : stacks.offsets[stack + 1]]
    inner = mine[: int(np.argmax(is_caller[mine])) + 1]
    found = np.diff(stacks.offsets) >= len(inner)
    places = stacks.offsets[:-1][found][:, None] + np.arange(len(inner))
    found[found] = (stacks.members[places] == inner).all(axis=1)
    return np.asarray(found)
