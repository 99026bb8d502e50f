"""The calls before of the function that runs the model: what the last went on to need, and whether all were smaller.

A validation before training and those after each epoch are runs of one function that different lines call: no loop
holds them all. The function does the same each time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.passes.same_places import SAME
from oomscope.analysis.passes.script_stacks import MODULE, OTHER, ScriptStacks
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, BoolArray, IntArray

LEAST_LARGER = 1.2
"""By how much a request must be larger to be told as that; batches are padded, and differ by a little."""


class LastCall(NamedTuple):
    """The last finished call of `function`.

    `needed`: bytes beyond what was allocated when it made the request that fails this time.
    """

    function: str
    needed: int


class LargerCall(NamedTuple):
    """A call of `function` that asks for `ratio` times as much as any before it asked for there.

    `called_at`: the line that calls it; None where it is the outermost of the script.
    """

    function: str
    called_at: Location | None
    ratio: float


class _CallsOfFunction(NamedTuple):
    """The calls of `function` up to the one underway, in order: `alike`, the requests of each like the one that fails.

    `ends`: the last entry of each. Calls between which nothing else is allocated count as one.
    """

    function: str
    called_at: Location | None
    alike: list[IntArray]
    ends: list[int]


def find_last_call(study: DeviceStudy, entry: int) -> LastCall | None:
    """The last finished call, before the one underway at `entry`, of the function that runs the model.

    None where no Module is called there, where no call before has come there with as large a request, or where that one
    failed.

    Args:
        study: of the device.
        entry: of a request; the one of the last call is the first, the second, … of its kind as this one is.
    """
    calls = _calls(study, entry)
    if calls is None:
        return None
    *earlier, now = calls.alike
    nth, sizes = len(now) - 1, study.history.trace.size
    for same, end in reversed([*zip(earlier, calls.ends, strict=False)]):
        if nth < len(same) and abs(int(sizes[same[nth]]) - int(sizes[entry])) <= SAME * int(sizes[entry]):
            needed = _needed(study, int(same[nth]), end)
            return None if needed is None else LastCall(calls.function, needed)
    return None


def find_larger_call(study: DeviceStudy, entry: int) -> LargerCall | None:
    """How much larger the request at `entry` is than all of its kind in the calls before of the function that runs it.

    None where no Module is called there, or a call before has come there with about as large a request, or failed.
    """
    calls = _calls(study, entry)
    if calls is None:
        return None
    trace = study.history.trace
    most = max((int(trace.size[one].max(initial=0)) for one in calls.alike[:-1]), default=0)
    ratio = int(trace.size[entry]) / max(most, 1)
    has_failed = (trace.action[np.concatenate(calls.alike)[:-1]] == Action.OOM).any()
    if not most or ratio < LEAST_LARGER or has_failed:
        return None
    return LargerCall(calls.function, calls.called_at, round(ratio, 3))


def _calls(study: DeviceStudy, entry: int) -> _CallsOfFunction | None:
    script, trace = study.loops.script, study.history.trace
    stack = int(trace.stack[entry])
    lines = () if stack < 0 or script.thread[stack] == OTHER else _lines(script, stack)
    if not lines:
        return None
    caller = lines[-1]
    events = trace.entries(Action.ALLOC, Action.OOM)
    events = events[(events <= entry) & (trace.stack[events] >= 0)]
    events = events[script.thread[trace.stack[events]] == script.thread[stack]]
    within = _in_function(script, int(script.function[caller]))[trace.stack[events]]
    begins = np.flatnonzero(within & ~np.append(False, within[:-1]))
    ends = np.append(np.flatnonzero(~within[1:] & within[:-1]) + 1, len(events))
    is_alike = _alike(study, stack, caller)[trace.stack[events]]
    alike = [events[begin:end][is_alike[begin:end]] for begin, end in zip(begins, ends, strict=True)]
    outer = script.frames[lines[-2]] if len(lines) > 1 else None
    called_at = None if outer is None else Location(outer.filename, outer.line, outer.name)
    return _CallsOfFunction(
        script.frames[caller].name, called_at, alike, events[np.minimum(ends, len(events) - 1)].tolist()
    )


def _needed(study: DeviceStudy, request: int, end: int) -> int | None:
    if (study.history.trace.action[request:end] == Action.OOM).any():
        return None
    allocated = study.history.curves.allocated
    return int(allocated[request : end + 1].max()) - int(allocated[request])


def _lines(script: ScriptStacks, stack: int) -> tuple[int, ...]:
    """The script's lines down to the one that calls the outermost Module; none where none is called."""
    path = script.paths[int(script.path_of[stack])]
    return script.lines_on(path) if MODULE in path else ()


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
