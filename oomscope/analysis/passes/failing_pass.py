"""The pass in which a request failed, against the last one that was finished.

The same lines ask for memory in every pass. Where this pass asks for more at the same places, its batch is larger or
its sequences are longer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from oomscope.analysis.passes.calls_in_progress import find_calls_in_progress, recorded_calls
from oomscope.analysis.passes.keeps_more import keeps_more
from oomscope.analysis.passes.larger_input import larger_input
from oomscope.analysis.passes.last_pass import last_like
from oomscope.analysis.passes.loop_that_matters import gathers_for, gave_back_before, loop_that_matters
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.passes.records import FailingPass
from oomscope.analysis.passes.same_places import SAME, at_same_places, most_before
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, BoolArray, IntArray
from oomscope.model.arrays import FloatArray
from oomscope.model.ordering import ascending

LEAST_COMPARED = 1 << 20
"""Bytes of a request below which its size says nothing of the batch: the allocator serves small ones from one pool."""
LEAST_AGREEING = 0.6
"""Of the bytes compared: how many must share the ratio. Some lines scale with the square of a sequence's length."""
LEAST_CHANGED = 0.2
"""Of the bytes compared: how many must have changed before the rest (weights, masks) is left out of the ratio."""
LEAST_STAIRS = 3
"""Passes that rose one after another; twice may be chance."""
MOST_LAST_STAIR = 2.0
"""Of the highest stair before it, as a ratio: a last one that is higher is no stair, but one large batch."""
_CALLED = re.compile(r"(\w+)\(")
_MOVES, _WALKS = {"to", "cuda", "npu", "xpu"}, {"items"}
"""What takes a batch to the device, and what goes through one that is a dict."""
_LOOPS = re.compile(r"\s*(?:async )?for .+:\s*(?:#.*)?$")
"""The line with which a loop begins."""


def find_failing_pass(study: DeviceStudy, entry: int) -> FailingPass | None:
    """How far the loop had come at `entry`; None where it is in no loop of the script, or in many calls at once.

    Args:
        study: of the device.
        entry: of the failed request, or any other instant.
    """
    run = failing_run(study, entry)
    if run is None:
        return None
    index = run.completed(entry)
    compared = _compare(study, run, entry)
    began_at = None if compared.began_at < 0 else study.loops.line_within(run, compared.began_at)
    return FailingPass(
        loop=study.loops.location(run),
        index=index,
        completed=index,
        ratio=compared.ratio,
        grew_at=None if compared.grew_at < 0 else _place(study, compared.grew_at),
        ratio_to_largest=_ratio_to_largest(study, run, entry, compared.grew_at),
        began_at=began_at and _chosen_at(study, began_at),
        input=larger_input(study, run, entry, began_at),
        keeps=keeps_more(study, entry),
        staircase=_staircase(study, run, index, entry, compared.grew_at),
        earlier_run_passes=gave_back_before(study, run, entry),
        before=_before(study, run),
        gathers_for=gathers_for(study, study.loops.location(run)),
        is_part=_may_have_begun_before(study, run),
    )


def _may_have_begun_before(study: DeviceStudy, run: LoopRun) -> bool:
    """Whether the trace may begin within the loop: it is not whole, and shows no line of its function above that."""
    if study.history_kind == "full":
        return False
    place, stacks = study.loops.location(run), study.history.trace.stack[: run.begin]
    lines = (study.loops.line_within(run, stack) for stack in ascending(stacks[stacks >= 0]).tolist())
    within = [one for one in lines if one is not None and (one.file, one.function) == (place.file, place.function)]
    return not any(one.line < place.line for one in within)


def _chosen_at(study: DeviceStudy, began_at: Location) -> Location:
    """The loop's own line, where `began_at` is the one below it that only moves what it yields to the device."""
    for one in study.snapshot.recorded.sources:
        at = began_at.line - one.first
        if one.filename == began_at.file and 0 < at < len(one.text) and _only_moves(one.text[at]):
            header = one.text[at - 1]
            inside = len(header) - len(header.lstrip()) < len(one.text[at]) - len(one.text[at].lstrip())
            return replace(began_at, line=began_at.line - 1) if inside and _LOOPS.match(header) else began_at
    return began_at


def _only_moves(text: str) -> bool:
    """Whether a line assigns what it takes to a device, and calls nothing else."""
    code = text.partition("#")[0]
    called = set(_CALLED.findall(code))
    return "=" in code and bool(called & _MOVES) and called <= _MOVES | _WALKS


def failing_run(study: DeviceStudy, entry: int) -> LoopRun | None:
    """The run of the loop whose pass is the failing one; None where there is none."""
    if not 0 <= entry < study.history.entries or _is_one_of_many(study, entry):
        return None
    run = _gathering_too_long(study, entry) or loop_that_matters(study, entry)
    return run if run is not None and run.is_running(entry) else None


def _before(study: DeviceStudy, run: LoopRun) -> int:
    """How many passes earlier runs of the loop had.

    Where a line that some passes come to makes one loop look like two, a pass without a run within it is one as well.
    """
    loops, place = study.loops, study.loops.location(run)
    around = [loops.runs[number] for number in loops.chain(run.parent)]
    alike = [*loops.runs_of(run.loop), *(one for one in around if loops.location(one) == place)]
    starts = ascending(np.concatenate([one.starts for one in alike]))
    return int(np.searchsorted(starts, run.begin))


def _is_one_of_many(study: DeviceStudy, entry: int) -> bool:
    """Whether `entry` is part of a call of which others are underway: their lines alternate, and tell no passes."""
    stack, script = int(study.history.trace.stack[entry]), study.loops.script
    if stack < 0 or script.task[stack] < 0:
        return False
    frame = script.frames[int(script.task[stack])]
    calls = (*find_calls_in_progress(study, entry), *(one for one in recorded_calls(study) if one.calls > 1))
    return any((one.function, one.file) == (frame.name, frame.filename) for one in calls)


def _gathering_too_long(study: DeviceStudy, entry: int) -> LoopRun | None:
    """A loop within the step that gathers until its end, and has gone on for longer than the last time."""
    matters = loop_that_matters(study, entry)
    running = [study.loops.runs[number] for number in study.loops.running(entry)]
    for run in running[running.index(matters) + 1 :] if matters in running else []:
        before = gave_back_before(study, run, entry)
        if before is not None and run.completed(entry) >= before:
            return run
    return None


class _Compared(NamedTuple):
    ratio: float | None
    grew_at: int = -1
    """The stack whose requests grew most; -1 for none."""
    began_at: int = -1
    """The stack whose request was the first to be larger, by the common ratio if there is one; -1 for none."""


def _compare(study: DeviceStudy, run: LoopRun, entry: int) -> _Compared:
    """The requests of the pass in progress against those at the same places of the last finished one like it."""
    like = last_like(study, run, entry)
    if like is None:
        return _Compared(None)
    stack, size, past = at_same_places(study, run, like, entry)
    large = np.maximum(size, past) >= LEAST_COMPARED
    if not large.any():
        return _Compared(None)
    grown = np.where(size > past * (1 + SAME), size - past, 0.0)
    if not grown[large].any():
        return _Compared(_common_ratio(size[large], past[large]))
    stacks, where = np.unique(stack[large], return_inverse=True)
    most = int(stacks[np.argmax(np.bincount(where, weights=grown[large]))])
    ratio = _common_ratio(size[large], past[large])
    return _Compared(ratio, most, int(stack[_first_alike(size / np.maximum(past, 1), grown > 0, ratio or 1.0)]))


def _first_alike(ratios: FloatArray, grown: BoolArray, ratio: float) -> int:
    """The first that grew by `ratio`, or by its root as a sequence whose scores did; else the first that grew."""
    alike = grown & ((np.abs(ratios / ratio - 1) <= SAME) | (np.abs(ratios**2 / ratio - 1) <= 2 * SAME))
    return int(np.argmax(alike if alike.any() else grown))


def _common_ratio(size: FloatArray, past: FloatArray) -> float | None:
    """The ratio that most of the bytes share; None where they share none."""
    ratio, weight = size / np.maximum(past, 1), np.maximum(size, past)
    changed = np.abs(ratio - 1) > SAME
    if weight[changed].sum() < LEAST_CHANGED * weight.sum():
        return 1.0
    ratio, weight = ratio[changed], weight[changed]
    order = np.argsort(ratio)
    middle = order[np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)]
    agree = np.abs(ratio - ratio[middle]) <= SAME * ratio[middle]  # where a file says that 0 bytes were asked for, too
    return round(float(ratio[middle]), 3) if weight[agree].sum() >= LEAST_AGREEING * weight.sum() else None


def _ratio_to_largest(study: DeviceStudy, run: LoopRun, entry: int, stack: int) -> float | None:
    """By how much the most that `stack` asks for at once in this pass exceeds all that it has been given before.

    A line that all layers share asks for more further on: of an earlier pass counts what it asked there as early.
    """
    if stack < 0:
        return None
    entries = _requests_of(study, stack, entry)
    entries = entries[entries >= run.begin]
    size, number = study.history.trace.size[entries], np.searchsorted(run.starts, entries, side="right") - 1
    nth = np.arange(len(entries)) - np.searchsorted(number, number)
    is_now = number == run.completed(entry)
    as_early = ~is_now & (nth < np.count_nonzero(is_now))
    before = max(most_before(study, stack, run.begin), int(size[as_early].max(initial=0)))
    return round(int(size[is_now].max(initial=0)) / before, 3) if before else None


def _staircase(study: DeviceStudy, run: LoopRun, index: int, entry: int, stack: int) -> tuple[int, int] | None:
    """The most that the line which grew most asked for in the first and in this pass, if it rose stair by stair."""
    if index < LEAST_STAIRS:
        return None
    entries = _requests_of(study, stack, entry)
    entries = entries[entries >= run.begin]
    if not len(entries):
        return None
    first = np.unique(np.searchsorted(run.starts, entries, side="right"), return_index=True)[1]
    sizes = np.maximum.reduceat(study.history.trace.size[entries], first)
    rises = sizes[1:] / np.maximum(sizes[:-1], 1)
    rising = rises[rises > 1]
    if np.any(rises < 1) or len(rising) < LEAST_STAIRS or rising[-1] > MOST_LAST_STAIR * rising[:-1].max():
        return None
    return int(sizes[0]), int(sizes[-1])


def _requests_of(study: DeviceStudy, stack: int, entry: int) -> IntArray:
    """The entries up to `entry` at which `stack` asked for memory; none for -1."""
    trace = study.history.trace
    entries = trace.entries(Action.ALLOC, Action.OOM)
    return np.asarray(entries[(trace.stack[entries] == stack) & (entries <= entry) & (stack >= 0)])


def _place(study: DeviceStudy, stack: int) -> Location | None:
    return study.sites.location(int(study.sites.site_of[stack]))
