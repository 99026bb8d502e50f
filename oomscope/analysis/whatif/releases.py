"""Where the trace shows memory going back to the device, and why it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from oomscope.allocator.rounding import allocation_size, round_size
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import NO_STACK, Action, BoolArray, IntArray, StackTable, Trace
from oomscope.model.ordering import ascending

RETURNS = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
OBTAINS = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)


@frozen
class ReleaseRun:
    """Entries `begin` to `end` (excluded) that all give memory back, for one reason.

    Attributes:
        by_empty_cache: whether the program asked for it; else a request that could not be served did.
    """

    begin: int
    end: int
    by_empty_cache: bool


def release_runs(trace: Trace, stacks: StackTable) -> list[ReleaseRun]:
    """The runs of segment_free and segment_unmap entries.

    An `empty_cache` leaves no entry of its own. It is told by its frame; where frees bear other stacks or none, by
    what follows: a request that releases memory goes on to obtain some, or fails.
    """
    entries = trace.entries(*RETURNS)
    if not len(entries):
        return []
    named = _has_empty_cache(trace, stacks, entries)
    breaks = np.flatnonzero((np.diff(entries) != 1) | (named[1:] != named[:-1])) + 1
    runs = []
    for part in np.split(np.arange(len(entries)), breaks):
        begin, end = int(entries[part[0]]), int(entries[part[-1]]) + 1
        by_empty_cache = bool(named[part[0]]) or not _request_follows(trace, end)
        runs.append(ReleaseRun(begin, end, by_empty_cache))
    return runs


def emptied_by_libraries(device: DeviceHistory, runs: Sequence[ReleaseRun]) -> list[ReleaseRun]:
    """`runs`, of which those are no refusals whose request asked for no more than was given at another time.

    Libraries empty the cache too, without a frame: cuDNN's benchmark does after it has tried a convolution.
    """
    answers = device.trace.entries(Action.ALLOC, Action.OOM)
    given = int(device.curves.reserved.max(initial=0))
    return [
        replace(run, by_empty_cache=run.by_empty_cache or 0 < _asked_in_all(device, run, answers) <= given)
        for run in runs
    ]


def _asked_in_all(device: DeviceHistory, run: ReleaseRun, answers: IntArray) -> int:
    """Reserved bytes with the request that went on after a run; 0 where none did."""
    entry = int(following(np.array([run.end]), answers, len(device.trace))[0])
    if entry >= len(device.trace):
        return 0
    requested = round_size(int(device.trace.size[entry]), device.config)
    return int(device.curves.reserved[run.begin]) + allocation_size(requested, device.config)


def _request_follows(trace: Trace, entry: int) -> bool:
    """Whether the request goes on that released memory before `entry`."""
    if entry >= len(trace):
        return False
    return trace.action[entry] in (*OBTAINS, *RETURNS, Action.OOM)


def _has_empty_cache(trace: Trace, stacks: StackTable, entries: IntArray) -> BoolArray:
    numbers = trace.stack[entries]
    calls = {
        int(number)
        for number in ascending(numbers)
        if number != NO_STACK and any(frame.name.endswith(("empty_cache", "emptyCache")) for frame in stacks[number])
    }
    return np.isin(numbers, list(calls))


def following(entries: IntArray, wanted: Sequence[int] | IntArray, none: int) -> IntArray:
    """For each of `entries`, the first of the ascending `wanted` at or after it; `none` where there is none."""
    choices = np.append(np.asarray(wanted, np.int64), none)
    result: IntArray = choices[np.searchsorted(choices[:-1], entries)]
    return result


def refused_sums(device: DeviceHistory, runs: list[ReleaseRun]) -> list[int]:
    """For each request that was refused at first, its bytes and those that were reserved."""
    trace, reserved, config = device.trace, device.curves.reserved, device.config
    sums = [
        int(reserved[entry]) + allocation_size(int(trace.size[entry]), config)
        for entry in trace.entries(Action.OOM).tolist()
    ]
    answers = trace.entries(Action.ALLOC, Action.OOM)
    for run in runs:
        # What was collected as garbage was not refused.
        if run.by_empty_cache or config.garbage_collection_threshold:
            continue
        refused = _asked_in_all(device, run, answers)
        if refused:
            sums.append(refused)
    return sums
