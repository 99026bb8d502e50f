"""Calls of one function that were underway at the same time: threads, coroutines, workers of a pool."""

from __future__ import annotations

from collections import Counter

import numpy as np

from oomscope.analysis.attribution.held_blocks import holders_in_blocks
from oomscope.analysis.attribution.sites import is_readers_frame
from oomscope.analysis.passes.calls_in_progress import find_calls_in_progress, recorded_calls
from oomscope.analysis.passes.records import CallsInProgress
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, BoolArray
from oomscope.model.ordering import ascending

LEAST_CALLS = 3
"""Two calls of one function at a time may be a recursion, or a producer beside its consumer."""


def calls_in_progress(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    """What was underway when `entry` happened, most calls first: as the recording saw it, else as the trace shows.

    Where nothing is now, and others of many calls have failed, what was then: their errors may keep what they made.
    """
    threads = recorded_calls(study)
    told = tuple(one for one in threads if one.calls >= LEAST_CALLS) or _by_locals(study)
    if told:
        return told
    # Of what the recorder saw in a thread it knows how many there were.
    known = {(one.file, one.function) for one in threads}
    now = tuple(one for one in find_calls_in_progress(study, entry) if (one.file, one.function) not in known)
    return now or _at_the_first_failure(study, entry)


def _at_the_first_failure(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    """The many calls that were underway when the first request failed, before `entry`, by the trace."""
    failed = study.history.trace.entries(Action.OOM)
    earlier = failed[failed < entry]
    if not len(earlier):
        return ()
    return tuple(one for one in find_calls_in_progress(study, int(earlier[0])) if one.calls >= LEAST_CALLS)


def functions_underway(study: DeviceStudy, calls: tuple[CallsInProgress, ...]) -> set[str]:
    """The functions that `calls` are of, and those the recording saw several threads in: what these have called."""
    found = Counter(
        name
        for thread in study.snapshot.recorded.stacks.threads
        if not thread.main
        for name in {frame.name.rpartition(".")[2] for frame in thread.frames if is_readers_frame(frame)}
    )
    inner = {name for name, threads in found.items() if calls and threads >= LEAST_CALLS}
    return inner | {one.function for one in calls}


def failed_at_once(study: DeviceStudy, entry: int) -> bool:
    """Whether a request had failed before `entry`, with many calls in progress."""
    failed = study.history.trace.entries(Action.OOM)
    return bool((failed < entry).any()) and bool(calls_in_progress(study, entry))


def bytes_of_calls(study: DeviceStudy, live: BoolArray, calls: CallsInProgress) -> int:
    """Bytes of the `live` blocks, bool[lifetimes], that were made within the function."""
    table = study.snapshot.stacks
    within = [
        number
        for number, frame in enumerate(table.frames)
        if (frame.filename, frame.name.rpartition(".")[2]) == (calls.file, calls.function)
    ]
    members = np.flatnonzero(np.isin(table.members, within))
    stacks = ascending(np.searchsorted(table.offsets, members, side="right") - 1)
    return int(study.history.size[live & np.isin(study.history.lifetimes.stack, stacks)].sum())


def _by_locals(study: DeviceStudy) -> tuple[CallsInProgress, ...]:
    """By local variables: one name of one function that holds several tensors stands in as many frames."""
    calls: dict[str, int] = {}
    for holder in holders_in_blocks(study):
        function, colon, variable = (holder.holder or "").partition(": ")
        if holder.kind == "tensor" and colon and variable.isidentifier() and not function.endswith(".py"):
            calls[function] = max(calls.get(function, 0), holder.tensors or 0)
    for function, frames in _suspended(study).items():
        calls[function] = max(calls.get(function, 0), frames)
    found = []
    for function, count in sorted(calls.items(), key=lambda pair: -pair[1]):
        place = _defined(study, function)
        if count >= LEAST_CALLS and place is not None:
            found.append(CallsInProgress(place.function, place.file, place.line, count))
    return tuple(found)


def _suspended(study: DeviceStudy) -> dict[str, int]:
    """How many coroutines wait within each function: the ways to the tensors that their variables hold."""
    ways: dict[str, set[str]] = {}
    for tensor in study.snapshot.recorded.tensors_on(study.index):
        for path in tensor.holders[:1]:
            way, arrow, place = path.rpartition(" → ")
            if arrow and way.endswith("<coroutine>"):
                ways.setdefault(place.partition(": ")[0], set()).add(way)
    return {function: len(known) for function, known in ways.items()}


def _defined(study: DeviceStudy, function: str) -> Location | None:
    """A line of `function`, which may be named with its class, among the reader's frames of the recorded stacks."""
    name = function.rpartition(".")[2]
    frames = [frame for frame in study.snapshot.stacks.frames if frame.name.rpartition(".")[2] == name]
    own = [frame for frame in frames if is_readers_frame(frame)]
    return next((Location(*frame[:3]) for frame in (*own, *frames)), None)
