"""A trace for Perfetto (https://ui.perfetto.dev) and chrome://tracing, as JSON in Chrome's Trace Event Format.

Each device is a process with counters of allocated, active and reserved bytes, each with every change of its curve;
slices for steps, phases and passes of loops; the ranges that the program marked; and instants for requests that
failed. Times are microseconds since the epoch, so that a trace of torch.profiler lies beside it. A trace without times
has an entry a microsecond instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from oomscope.analysis.passes.loops import LoopRun, Loops
from oomscope.analysis.records import PHASES, Location
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import Action, IntArray, Snapshot
from oomscope.units import format_bytes
from oomscope.version import __version__
from oomscope.wording.clean import clean

COUNTERS = ("allocated", "active", "reserved")
EVENTS, STEPS, PHASE_RUNS, LOOPS = range(4)
"""Numbers of a device's tracks; loops within loops have tracks below."""
_MOST_TRACKS = 1000
_BATCH = 10_000
_Event = dict[str, Any]


def to_perfetto(study: SnapshotStudy) -> Iterator[bytes]:
    """The file in pieces of some thousand events, so that it need not be in memory as a whole.

    Args:
        study: of the snapshot.
    """
    clocks = {device.name: _EntryTimes(device.history) for device in study.devices}
    about = {
        "exporter": f"oomscope {__version__}",
        "clock": {name: "unix_us" if clock.timed else "entries" for name, clock in clocks.items()},
        "cut": study.snapshot.cut is not None,
    }
    lines = _lines(study, clocks)
    yield f'{{"displayTimeUnit":"ms","otherData":{_json(about)},"traceEvents":[\n{next(lines, "")}'.encode()
    while batch := list(islice(lines, _BATCH)):
        yield "".join(f",\n{line}" for line in batch).encode()
    yield b"\n]}\n"


class _EntryTimes:
    """When each entry of a device happened; entries of one microsecond share it, and none is before the last one."""

    def __init__(self, history: DeviceHistory) -> None:
        self.timed = history.trace.timed and history.recorded > 0
        count = history.recorded
        self._time = np.maximum.accumulate(history.trace.time_us[:count]) if self.timed else np.arange(count)

    def at(self, entry: int) -> int:
        """The time of `entry`; for what comes before the first a microsecond earlier, after the last that of it."""
        if not len(self._time):
            return 0
        return int(self._time[min(entry, len(self._time) - 1)]) if entry >= 0 else int(self._time[0]) - 1

    def of(self, entries: IntArray) -> list[int]:
        """The times of `entries`, none of which is before the first."""
        return self._time[entries].tolist() if len(entries) else []


def _lines(study: SnapshotStudy, clocks: dict[str, _EntryTimes]) -> Iterator[str]:
    for device in study.devices:
        clock = clocks[device.name]
        for events in (_tracks(device), _slices(device, clock), _instants(device, clock)):
            yield from map(_json, events)
        yield from _counters(device, clock)
    first = next(iter(study.devices), None)
    if first is not None and clocks[first.name].timed:
        yield from map(_json, _ranges(study.snapshot, {one.index for one in study.devices}, first.index))
        for mark in study.snapshot.recorded.marks:
            track = {"pid": _process(first.index), "tid": _track(first.index, EVENTS)}
            yield _json({"ph": "i", "s": "g", "name": clean(mark.name), "ts": mark.time_us, **track})


def _process(index: int) -> int:
    """The process that stands for the device `index`; 0 is the idle process of Linux."""
    return index + 1


def _track(index: int, number: int) -> int:
    """A thread's number, which no other process has."""
    return _process(index) * _MOST_TRACKS + number


def _json(event: Any) -> str:
    return json.dumps(event, separators=(",", ":"), allow_nan=False)


def _tracks(device: DeviceStudy) -> Iterator[_Event]:
    """What the process of a device and its tracks are called."""
    process = _process(device.index)
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": device.name}}
    yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}
    names = {EVENTS: "OOMs and snapshots", STEPS: f"steps ({device.steps.source})", PHASE_RUNS: "phases"}
    for depth in sorted({_depth(device.loops, run) for run in _loops(device.loops)}):
        names[LOOPS + depth] = f"passes, depth {depth}"
    for number, name in names.items():
        track = {"ph": "M", "pid": process, "tid": _track(device.index, number)}
        yield {**track, "name": "thread_name", "args": {"name": name}}
        yield {**track, "name": "thread_sort_index", "args": {"sort_index": number}}


def _slices(device: DeviceStudy, clock: _EntryTimes) -> Iterator[_Event]:
    def made(number: int, name: str, begin: int, end: int, **values: Any) -> _Event:
        time = clock.at(begin)
        return {
            "ph": "X",
            "pid": _process(device.index),
            "tid": _track(device.index, number),
            "name": name,
            "ts": time,
            "dur": clock.at(end) - time,
            "args": {"first_entry": begin, **values},
        }

    for step in device.steps.steps:
        values = {"last_entry": step.end, "peak_allocated": step.peak_allocated, "peak_entry": step.peak_entry}
        name = f"step {clean(step.name)}"
        yield made(STEPS, name, step.begin, step.end, **values, end_allocated=step.end_allocated)
    for phase, begin, end, count, size in _phase_runs(device):
        values = {"last_entry": end, "allocations": count, "allocated_bytes": size}
        yield made(PHASE_RUNS, PHASES[phase], begin, end, **values)
    for run in _loops(device.loops):
        at, number = device.loops.location(run), LOOPS + _depth(device.loops, run)
        for index, (begin, end, peak, left) in enumerate(_passes(device.history, run)):
            values = {"last_entry": end - 1, "peak_allocated": peak, "end_allocated": left}
            yield made(number, f"{_place(at)} pass {index}", begin, end, **values, loop=_full(at))


def _phase_runs(device: DeviceStudy) -> Iterator[tuple[int, int, int, int, int]]:
    """Phase, first and last allocation, their number and bytes, of each stretch of allocations of one phase."""
    born = device.history.lifetimes.born
    rows = np.flatnonzero((born > BEFORE) & (born < device.history.recorded))
    rows = rows[np.argsort(born[rows])]
    if not len(rows):
        return
    phase = device.phases[rows]
    first = np.flatnonzero(np.append(True, phase[1:] != phase[:-1]))
    last = np.append(first[1:], len(rows)) - 1
    size = np.add.reduceat(device.history.size[rows], first)
    columns = (phase[first], born[rows[first]], born[rows[last]], last - first + 1, size)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _loops(loops: Loops) -> Iterator[LoopRun]:
    """The runs whose passes are certain, and more than one line of allocations."""
    return (run for run in loops.runs if run.certain and not run.one_line)


def _depth(loops: Loops, run: LoopRun) -> int:
    """How many loops are around `run`, at most as many as there are tracks; a thread's lie below the script's."""
    around = sum(1 for _ in loops.chain(run.parent)) if run.parent >= 0 else 0
    depth = min(around, _MOST_TRACKS // 2 - LOOPS - 1)
    return depth + (_MOST_TRACKS // 2 - LOOPS if run.thread else 0)


def _passes(history: DeviceHistory, run: LoopRun) -> Iterator[tuple[int, int, int, int]]:
    """First entry of each pass, first one after it, the most allocated during it, and what is allocated after it."""
    ends = np.append(run.starts[1:], min(run.end, history.recorded))
    kept = run.starts < ends
    starts, ends = run.starts[kept], ends[kept]
    if not len(starts):
        return
    allocated = history.curves.allocated[1 : int(ends[-1]) + 1]
    peaks = np.maximum.reduceat(allocated, starts)
    yield from zip(starts.tolist(), ends.tolist(), peaks.tolist(), allocated[ends - 1].tolist(), strict=True)


def _place(at: Location) -> str:
    name = at.file.replace("\\", "/").rpartition("/")[2]
    return clean(f"{name}:{at.line} {at.function}", 100)


def _full(at: Location) -> str:
    return clean(f"{at.file}:{at.line} {at.function}")


def _instants(device: DeviceStudy, clock: _EntryTimes) -> Iterator[_Event]:
    trace, stacks = device.history.trace, device.snapshot.stacks
    for entry in trace.entries(Action.OOM, Action.SNAPSHOT).tolist():
        event = {"ph": "i", "s": "t", "pid": _process(device.index), "tid": _track(device.index, EVENTS)}
        event["ts"] = clock.at(entry)
        if trace.action[entry] == Action.SNAPSHOT:
            yield {**event, "name": "snapshot", "args": {"entry": entry}}
            continue
        size, free = int(trace.size[entry]), int(trace.address[entry])
        frames = [f"{frame.filename}:{frame.line} {frame.name}" for frame in stacks[int(trace.stack[entry])]]
        values = {"entry": entry, "requested": size, "device_free": free, "stack": [clean(line) for line in frames]}
        yield {**event, "name": f"OOM, {format_bytes(size)} requested", "args": values}


def _counters(device: DeviceStudy, clock: _EntryTimes) -> Iterator[str]:
    """Each change of a curve; the first point is what was there before the first entry."""
    curves, count = device.history.curves, device.history.recorded
    for name in COUNTERS:
        curve: IntArray = getattr(curves, name)[: count + 1]
        changed = np.flatnonzero(curve[1:] != curve[:-1])
        # Written by hand: there are millions, of numbers and names of our own only.
        head = f'{{"ph":"C","pid":{_process(device.index)},"name":"{name}","ts":'
        yield f'{head}{clock.at(BEFORE)},"args":{{"bytes":{int(curve[0])}}}}}'
        for time, value in zip(clock.of(changed), curve[changed + 1].tolist(), strict=True):
            yield f'{head}{time},"args":{{"bytes":{value}}}}}'
        if count:
            yield f'{head}{clock.at(count - 1)},"args":{{"bytes":{int(curve[-1])}}}}}'


def _ranges(snapshot: Snapshot, devices: Iterable[int], default: int) -> Iterator[_Event]:
    """`record_function` ranges, as pairs that need not nest; what began before the recording is left out."""
    opened: dict[tuple[str, int], list[int]] = {}
    for number, mark in enumerate(snapshot.annotations):
        index = mark.device if mark.device in devices else default
        event = {"cat": "record_function", "pid": _process(index), "tid": _track(index, EVENTS), "ts": mark.time_us}
        event["name"] = clean(mark.name)
        key = (mark.name, index)
        if mark.stage == "START":
            opened.setdefault(key, []).append(number)
            yield {"ph": "b", "id2": {"local": hex(number)}, **event}
        elif mark.stage == "END" and opened.get(key):
            yield {"ph": "e", "id2": {"local": hex(opened[key].pop())}, **event}
