"""The iterations of the program: from annotations, from the recording's own marks, or from what repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OPTIMIZER
from oomscope.analysis.passes.loops import LoopRun, Loops
from oomscope.analysis.passes.records import StepPeak, Steps
from oomscope.analysis.said.marked_passes import marked_passes
from oomscope.analysis.said.ranges import Ranges
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import NO_STACK, Action, IntArray, Snapshot, UInt8Array
from oomscope.model.ordering import ascending, numbered, places
from oomscope.model.recorded import RecordedStep


def find_steps(
    snapshot: Snapshot, history: DeviceHistory, phases: UInt8Array, loops: Loops, ranges: Ranges | None = None
) -> Steps:
    """The steps of one device, first to last; the last may be unfinished.

    Recorded marks, ``ProfilerStep#`` ranges and the program's own ranges around each pass say where a step begins;
    ``Optimizer.step#`` ranges where one ends. Without any, optimizer allocations mark the ends, or the passes of the
    script's outermost loop are the steps.

    Args:
        snapshot: the whole snapshot.
        history: one of its devices.
        phases: uint8[lifetimes], from `phase_of`.
        loops: of the script on that device.
        ranges: that the program marked on that device; None: none.
    """
    if not history.entries:
        return Steps(0, "none")
    clock = np.maximum.accumulate(history.trace.time_us) if history.trace.timed else np.zeros(0, np.int64)
    if len(clock):
        if rows := sorted(snapshot.recorded.steps, key=lambda step: step.begin_us):
            names, by_optimizer = recorded_names(rows)
            found = _from_begins([step.begin_us for step in rows], names, clock, history, "recorded")
            return replace(found, by_optimizer=by_optimizer and found.count > 0)
        if begins := _profiler_steps(snapshot):
            return _from_begins(
                [time for time, _ in begins], [name for _, name in begins], clock, history, "annotations"
            )
        ends = _optimizer_ends(snapshot, history.index)
        after = np.searchsorted(clock, np.array(ends, np.int64), side="right") if ends else np.zeros(0, np.int64)
        if ranges is not None:
            marked, names = marked_passes(ranges, history, after)
            if len(marked) and (made := _distinct(marked, names, history)).count:
                return made
        if len(after := ascending(after[after > 0])):
            found = _from_ends(_whole_rounds(after, history, phases), history, phases, "annotations")
            return replace(found, by_optimizer=True)
    births = np.flatnonzero(history.lifetimes.born > BEFORE)
    births = births[np.argsort(history.lifetimes.born[births])]
    if np.any(phases[births] == OPTIMIZER):
        found = _from_ends(_bursts(births, phases, OPTIMIZER, history), history, phases, "inferred")
        return replace(found, by_optimizer=True)
    if runs := _widest(loops):
        begins_at = np.concatenate([run.starts for run in runs])
        return _made(begins_at, [], history, "inferred", min(runs[-1].end, history.entries))
    if not loops.is_known and len(after := _bursts(births, phases, BACKWARD, history)) > 1:
        return _from_ends(after, history, phases, "inferred")
    return Steps(0, "none")


def recorded_names(rows: Sequence[RecordedStep]) -> tuple[list[str], bool]:
    """The names of recorded steps, by their beginnings, and whether each ends with a step of the optimizer.

    Where the program announces no steps, the recording notes one at the end of each step of the optimizer: it begins
    where the last one ended, and the very first where it ends itself. They are numbered from 0 in the dump, and named
    from 1 here, as passes are.
    """
    names = [step.name for step in rows]
    closed = all(step.end_us is not None and step.name.isdecimal() and not step.shape for step in rows)
    follow = all(one.end_us == following.begin_us for one, following in pairwise(rows))
    several = len(rows) > 1 or any(step.begin_us == step.end_us for step in rows)
    if not (closed and follow and several):
        return names, False
    return [str(int(name) + 1) for name in names], True


LEAST_PASSES = 3
"""Passes of an outer loop that are taken for the steps before those of a loop within are: two may be two epochs."""
LEAST_COVERED = 0.5
"""Of the script's allocations: what a loop must span. A short one sets something up."""


def _widest(loops: Loops) -> list[LoopRun]:
    """The runs, in their order, of the loop that most of the script runs in; empty where there is none.

    Layers of a model are no steps, and neither is what one line makes.
    """
    found: dict[int, list[LoopRun]] = {}
    for run in loops.runs:
        if run.certain and not run.one_line and not run.thread:
            found.setdefault(run.loop, []).append(run)
    wide = [loop for loop in found if loops.share(loop) >= LEAST_COVERED]
    for least in (LEAST_PASSES, 2):
        for loop in wide:
            if sum(len(run.starts) for run in found[loop]) >= least:
                return found[loop]
    return []


def _profiler_steps(snapshot: Snapshot) -> list[tuple[int, str]]:
    return sorted(
        (mark.time_us, mark.name.rpartition("#")[2])
        for mark in snapshot.annotations
        if mark.stage == "START" and mark.name.startswith("ProfilerStep#")
    )


UNFINISHED = 1
"""By how much optimizers that step in turn may differ: the round in progress has stepped some of them."""


def _optimizer_ends(snapshot: Snapshot, device: int) -> list[int]:
    """When a step of the optimizer ended; of several optimizers that step in turn, the last one of the round."""
    marks = [mark for mark in snapshot.annotations if mark.stage == "END" and mark.name.startswith("Optimizer.step#")]
    here = [mark for mark in marks if mark.device == device]
    marks = sorted(here or marks, key=lambda mark: mark.time_us)
    if not marks:
        return []
    counts = Counter(mark.name for mark in marks)
    most = max(counts.values())
    chosen = [name for name, count in counts.items() if count >= most - UNFINISHED]
    last = [mark.name for mark in marks if mark.name in chosen][-1]
    return [mark.time_us for mark in marks if mark.name == last]


def _from_begins(
    times: Sequence[int], names: Sequence[str], clock: IntArray, history: DeviceHistory, source: str
) -> Steps:
    """Steps that begin at `times`. A step that began before the first entry begins with it, unless the next did too."""
    begins = np.searchsorted(clock, np.array(times, np.int64), side="left")
    return _distinct(begins, names, history, source)


def _distinct(begins: IntArray, names: Sequence[str], history: DeviceHistory, source: str = "annotations") -> Steps:
    """Steps that begin at the entries `begins`, ascending, without those in which nothing happened."""
    following = np.append(begins[1:], history.entries)
    kept = np.flatnonzero((begins < history.entries) & (following > begins))
    if not len(kept):
        return Steps(0, "none")
    return _made(begins[kept], [names[row] for row in kept.tolist()], history, source)


def _from_ends(after: IntArray, history: DeviceHistory, phases: UInt8Array, source: str) -> Steps:
    """Steps that end before each entry of `after`; what follows the last is a step if it allocates for a forward."""
    lifetimes = history.lifetimes
    working = lifetimes.born[(phases == FORWARD) | (phases == BACKWARD)]
    working = working[working > BEFORE]
    begin = _first_begin(int(after[0]) if len(after) else history.entries, history, phases)
    begins = np.append(begin, after)
    failed = history.trace.entries(Action.OOM)
    if len(after) and not ((working >= after[-1]).any() or (failed >= after[-1]).any()):
        begins = begins[:-1]
    return _made(ascending(begins[begins < history.entries]), [], history, source)


MOST_OPTIMIZERS = 4
"""That step in turn and share a name; more would be a period found by chance."""


COMMON = 0.5
"""Of the stacks before two steps of an optimizer: more are of one code."""


def _whole_rounds(after: IntArray, history: DeviceHistory, phases: UInt8Array) -> IntArray:
    """Of optimizers of one class that step in turn (a generator's, a discriminator's), the ends of the last one alone.

    They share a name, but what runs before each is code of its own: the forwards' stacks tell them apart, most of them.
    A few that come and go are of one code, and the data decides.
    """
    lifetimes = history.lifetimes
    rows = np.flatnonzero((phases == FORWARD) & (lifetimes.stack >= 0) & (lifetimes.born < after[-1]))
    step = places(after, lifetimes.born[rows], "right")
    width = int(lifetimes.stack.max(initial=0)) + 1
    stacks: list[set[int]] = [set() for _ in after]
    for one in numbered(step * width + lifetimes.stack[rows])[0].tolist():
        stacks[one // width].add(one % width)
    if any(len(one & other) > COMMON * min(len(one), len(other)) for one, other in pairwise(stacks)):
        return after
    for period in range(1, min(MOST_OPTIMIZERS, len(after) // 2) + 1):
        if all(one == other for one, other in zip(stacks, stacks[period:], strict=False)):
            return after[period - 1 :: period]
    return after


def _first_begin(first_end: int, history: DeviceHistory, phases: UInt8Array) -> int:
    """Where the first step begins: with the first allocation of a stack that comes again, else with the first forward.

    Before it the program makes its model.
    """
    lifetimes = history.lifetimes
    early = np.flatnonzero((lifetimes.born > BEFORE) & (lifetimes.born < first_end) & (lifetimes.stack >= 0))
    comes_again = np.zeros(int(lifetimes.stack.max(initial=NO_STACK)) + 2, np.bool_)
    comes_again[lifetimes.stack[lifetimes.born >= first_end]] = True
    recurring = lifetimes.born[early[comes_again[lifetimes.stack[early]]]]
    forward = lifetimes.born[early[phases[early] == FORWARD]]
    candidates = [int(rows.min()) for rows in (recurring, forward) if len(rows)]
    return min(candidates, default=0)


def _bursts(births: IntArray, phases: UInt8Array, phase: int, history: DeviceHistory) -> IntArray:
    """Entries after each run of allocations of `phase` that a forward follows."""
    kind = phases[births]
    telling = births[(kind == phase) | (kind == FORWARD)]
    if not len(telling):
        return np.zeros(0, np.int64)
    inside = phases[telling] == phase
    last = inside & ~np.append(inside[1:], True)
    return np.asarray(history.lifetimes.born[telling[last]] + 1)


def passes_of(run: LoopRun, history: DeviceHistory, before: int = 0) -> Steps:
    """The passes of one run of a loop, as steps that are numbered from 1, or from behind those `before` it."""
    names = [str(before + number) for number, _ in enumerate(run.starts, start=1)]
    return _made(run.starts, names, history, "inferred", min(run.end, history.entries))


def _made(
    begins: IntArray, names: Sequence[str], history: DeviceHistory, source: str, after: int | None = None
) -> Steps:
    """The records, with the most that was allocated in each step; the last ends before entry `after`, or with all."""
    allocated = history.curves.allocated
    ends = np.append(begins[1:], history.entries if after is None else after) - 1
    steps = []
    for number, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        part = allocated[begin + 1 : end + 2]
        peak = int(np.argmax(part))
        name = names[number] if names else str(number + 1)
        steps.append(StepPeak(name, begin, end, int(part[peak]), begin + peak, int(part[-1])))
    return Steps(len(steps), source, tuple(begins.tolist()), tuple(steps))
