"""Which loop a person means by "the step that failed", and which of its runs gather on purpose.

It is the outermost one that has finished passes. Where passes of a loop within are whole steps themselves, as the
batches of an epoch are, it is that one. A loop that gathers until its end and has given everything back before is part
of a step: time steps of an unrolled network, micro-batches of one backward.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import GRADIENT, OPTIMIZER_STATE, PARAMETER, WORKSPACE
from oomscope.analysis.passes.loops import LoopRun, Loops
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, BoolArray, IntArray
from oomscope.model.ordering import ascending, is_any

GIVEN_BACK = 0.02
"""Of the bytes that a run had gathered: what may remain although it gave back, such as its last output."""
GATHERS = 0.5
"""Of its passes: from how many a run must hold something at its end. Fewer are a window."""


def loop_that_matters(study: DeviceStudy, entry: int) -> LoopRun | None:
    """The run that `entry` is part of and whose passes are steps; None where it is in no loop."""
    return study.once(("loop that matters", entry), lambda: _loop_that_matters(study, entry))


def _loop_that_matters(study: DeviceStudy, entry: int) -> LoopRun | None:
    loops = study.loops
    running = [loops.runs[number] for number in loops.running(entry, thread=in_thread(study, entry))]
    running = [run for run in running if not constructs(study, run, entry)]
    finished = [run for run in running if run.completed(entry)]
    if not finished:
        return running[-1] if running else None
    chosen = finished[0]
    for inner in finished[1:]:
        if inner.one_line or gave_back_before(study, inner, entry) is not None:
            break
        chosen = inner
    return chosen


def in_thread(study: DeviceStudy, entry: int) -> bool:
    """Whether `entry` was made by a thread that the program started."""
    if not 0 <= entry < study.history.entries:
        return False
    stack = int(study.history.trace.stack[entry])
    return stack >= 0 and study.loops.is_thread(stack)


def gave_back_before(study: DeviceStudy, run: LoopRun, entry: int) -> int | None:
    """How many passes the last earlier run had that gathered as well and gave everything back; None for none."""
    loops = study.loops
    for earlier in reversed(loops.runs_of(run.loop)):
        if earlier.begin < run.begin and earlier.end <= entry and gathers_and_gives_back(study, earlier):
            return len(earlier.starts)
    return None


def constructs(study: DeviceStudy, run: LoopRun, entry: int) -> bool:
    """Whether a run is of a constructor and has freed nothing: it makes the parts of one object, a model's layers."""
    place = study.loops.location(run)
    if place is None or place.function.rpartition(".")[2] != "__init__":
        return False
    end = min(run.end, entry)
    return bool(np.all(study.history.lifetimes.freed[born_in(study, run.begin, end)] >= end))


def went_as_far_before(study: DeviceStudy, since: int, entry: int) -> bool:
    """Whether the run of a loop that has grown from `since` on is no longer than one before it: it may end as that.

    Args:
        study: of the device.
        since: the entry at which the first of what grows was made.
        entry: up to which passes are counted.
    """
    loops = study.loops
    for run in (one for one in loops.runs if one.begin <= since < one.end):
        finished = run.completed(entry) if run.is_running(entry) else len(run.starts)
        line = loops.location(run)  # whoever calls the function that it is in
        ended = (one for one in loops.runs if one.end <= run.begin and len(one.starts) >= finished)
        if any(loops.location(one) == line for one in ended):
            return True
    return False


def gathers_and_gives_back(study: DeviceStudy, run: LoopRun) -> bool:
    """Whether a run that has ended held something of most of its passes to its end, and nothing after its step."""
    held, left = _gathered(study, run)
    return held > 0 and left <= GIVEN_BACK * held


def gathers_for(study: DeviceStudy, loop: Location | None) -> Location | None:
    """The backward that is to come of what the passes of `loop` make, as the recorder saw it; None for none.

    None as well where an earlier run of the loop has left behind what it gathered, after that backward: it was not for
    that.
    """
    for one in study.snapshot.recorded.stacks.gathering:
        if loop is not None and one.backward is not None and one.holds(loop.file, loop.line):
            backward = Location(one.backward.filename, one.backward.line, one.backward.name)
            return None if _leaves_behind(study, loop) else backward
    return None


def _leaves_behind(study: DeviceStudy, loop: Location) -> bool:
    """Whether a run of `loop` whose step has ended left what it gathered."""
    loops = study.loops
    for run in loops.runs:
        if loops.location(run) == loop and end_of_step(loops, run) < loops.entries:
            held, left = _gathered(study, run)
            if held and left > GIVEN_BACK * held:
                return True
    return False


def _gathered(study: DeviceStudy, run: LoopRun) -> tuple[int, int]:
    """Bytes that a run held at its end, of most of its passes, and those of them that outlived the step around it.

    0 and 0 where it held something of few passes.
    """
    return study.once(("gathered", run.begin, run.end, run.loop), lambda: _count_gathered(study, run))


def _count_gathered(study: DeviceStudy, run: LoopRun) -> tuple[int, int]:
    lifetimes, size = study.history.lifetimes, study.history.size
    rows = born_in(study, run.begin, run.end)
    rows = rows[may_pass(study)[rows]]
    held = rows[lifetimes.freed[rows] >= run.end]
    passes = ascending(np.searchsorted(run.starts, lifetimes.born[held], side="right"))
    if len(passes) < max(2, GATHERS * len(run.starts)):
        return 0, 0
    left = held[lifetimes.freed[held] >= end_of_step(study.loops, run)]
    return int(size[held].sum()), int(size[left].sum())


def end_of_step(loops: Loops, run: LoopRun) -> int:
    """The entry at which the pass around `run` ends, and with it what a step may hold."""
    if run.parent < 0:
        return loops.entries
    around = loops.runs[run.parent]
    after = int(np.searchsorted(around.starts, run.begin, side="right"))
    return int(around.starts[after]) if after < len(around.starts) else around.end


def born_in(study: DeviceStudy, begin: int, end: int) -> IntArray:
    """int64[…]: the lifetimes that begin from entry `begin` to before entry `end`, in that order."""
    born = study.history.lifetimes.born
    order = study.once("order of births", lambda: np.argsort(born, kind="stable"))
    ordered = study.once("births in order", lambda: born[order])
    return np.asarray(order[np.searchsorted(ordered, begin) : np.searchsorted(ordered, end)])


def may_pass(study: DeviceStudy) -> BoolArray:
    """bool[lifetimes]: what is made by a pass and may go with it, unlike the model and what is made once for it."""
    return study.once(
        "may pass",
        lambda: ~is_any(study.categories, (PARAMETER, GRADIENT, OPTIMIZER_STATE, WORKSPACE)),
    )


def pass_begins(study: DeviceStudy, entry: int) -> IntArray:
    """int64[passes]: the entries at which passes of the loop that matters begin, in all its runs up to `entry`.

    Where no loop is known, those of the steps.
    """
    run = loop_that_matters(study, entry)
    if run is None:
        begins = np.array(study.steps.boundaries, np.int64)
    else:
        begins = np.concatenate([one.starts for one in study.loops.runs_of(run.loop)])
    return np.asarray(begins[begins <= entry])


def is_failure(study: DeviceStudy, entry: int) -> bool:
    """Whether `entry` is a request that failed."""
    return 0 <= entry < study.history.entries and bool(study.history.trace.action[entry] == Action.OOM)
