"""Growth by generations: every finished pass of a loop leaves something behind.

Loops are asked from the outermost inwards: the first that has finished passes enough tells. What a loop gathers until
its end and gave back after earlier runs is its work; a list that was filled by a loop that has ended was made once; a
window of the last few passes, and what the first ones left, rise no further.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from oomscope.analysis.labels.categories import OPTIMIZER_STATE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OPTIMIZER
from oomscope.analysis.passes.calls_in_progress import find_calls_in_progress, recorded_calls
from oomscope.analysis.passes.candidates import Candidates, in_private_pool
from oomscope.analysis.passes.left_from_before import last_stack
from oomscope.analysis.passes.loop_that_matters import (
    born_in,
    constructs,
    gathers_and_gives_back,
    gathers_for,
    in_thread,
    is_failure,
)
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.passes.script_stacks import MODULE
from oomscope.analysis.passes.straight_rise import straight_rise
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray
from oomscope.model.ordering import ascending

LEAST_LEFT = 0.5
"""Of the least bytes: what finished passes must have left, for the pass in progress may have made the rest."""
LEAST_PASSES = 3
"""Passes that left something: two points are no line."""
LEAST_OF_ALL = 2
"""The same, where every pass so far left something, or those before the trace did as well."""
LEAST_BEFORE = 3
"""Blocks from before the trace that show that a site has left something behind all along."""
LEAST_COVERED = 0.6
"""Of the passes since the first that left something, at the pace at which they do: what must have. Gaps are chance."""
LEAST_OF_STATE = 8
"""Passes that left optimizer state: it is made when a parameter is first updated, for some a few passes late."""
MOST_LAYERS = 128
"""No model calls so many layers one after another; a loop that has made more passes goes through batches."""
MOST_OF_RESULTS = 0.2
"""Of what its passes made: a loop around Modules that keeps less than that keeps results; layers keep activations."""
MOST_FROM_BEFORE = 0.1
"""Of what is alive: what may come from earlier runs of a loop that are said to have given back."""
KEEPS_ALL = 0.98
"""Of what its passes made: from when on a loop does nothing but fill something."""
JUST_ENDED = 2.0
"""Usual passes: how much may come after an evaluation for it still to be what fills the device, such as joining what it
has kept. A loop without a forward that has ended has only filled something."""


@frozen(eq=False)
class PassGrid:
    """The passes of one loop in all its runs, up to an entry.

    Attributes:
        begins: int64[passes], the entry at which each begins.
        ends: int64[finished passes], the last entry of each.
        run_of: int64[passes], the number of the run of each.
        runs: the runs of the loop, first to last; empty where these are steps and no loop is known.
        running: whether the last pass is in progress.
        place: where the loop is.
        certain: False where a loop within a Module's forward looks the same.
    """

    begins: IntArray
    ends: IntArray
    run_of: IntArray
    runs: tuple[LoopRun, ...]
    running: bool
    place: Location | None
    certain: bool

    @property
    def finished(self) -> int:
        """How many passes have finished."""
        return len(self.ends)

    def number(self, entries: IntArray) -> IntArray:
        """The pass that each of `entries` belongs to."""
        return np.asarray(np.searchsorted(self.begins, entries, side="right") - 1)


def find_generations(study: DeviceStudy, candidates: Candidates) -> list[Growth]:
    """Sites of which blocks from several finished passes are alive, more of them after every pass."""
    lifetimes = candidates.history.lifetimes
    found: list[Growth] = []
    known: set[int] = set()
    grids = list(_grids(study, candidates))
    for least, (grid, inside) in product((LEAST_PASSES, LEAST_OF_ALL), grids):
        live = np.flatnonzero(candidates.eligible & inside & lifetimes.allocated_at(candidates.at))
        number = grid.number(lifetimes.born[live])
        old = number < grid.finished
        keys, where = np.unique(candidates.key[live], return_inverse=True)
        left = np.bincount(where[old], weights=candidates.history.size[live[old]], minlength=len(keys))
        for one in np.flatnonzero(left >= LEAST_LEFT * candidates.least).tolist():
            mine = where == one
            if int(keys[one]) in known:
                continue
            if _is_gathered(study, candidates, grid, live[mine], number[mine]):
                known.add(int(keys[one]))  # whatever loops lie within: they made what is gathered
                continue
            if not _may_grow(study, candidates, grid, inside, live[mine], number[mine]):
                continue
            if (growth := _of_site(study, candidates, grid, inside, live[mine], number[mine], least)) is not None:
                known.add(int(keys[one]))
                found.append(growth)
    return found


def _grids(study: DeviceStudy, candidates: Candidates) -> Iterator[tuple[PassGrid, BoolArray]]:
    """The passes of each loop that has live blocks, outer loops first, and which lifetimes were born in it.

    Then loops that may be layers, for what lies in no other; the recorded steps, where there is no loop.
    """
    loops, lifetimes, at = study.loops, candidates.history.lifetimes, candidates.at
    threads = loops.script.thread[lifetimes.stack] if len(loops.script.thread) else np.zeros(len(lifetimes), np.int64)
    innermost = loops.around(lifetimes.born, (threads == 2) & (lifetimes.stack >= 0))
    innermost[lifetimes.born < 0] = -1
    used = ascending(innermost[candidates.eligible & lifetimes.allocated_at(at) & (innermost >= 0)]).tolist()
    depth: dict[int, int] = {}
    for run in used:
        for number in loops.chain(run):
            loop = loops.runs[number].loop
            depth[loop] = max(depth.get(loop, 0), len(list(loops.chain(number))))
    for loop in sorted(depth, key=depth.__getitem__):
        within = np.zeros(len(loops.runs) + 1, np.bool_)
        for number, run in enumerate(loops.runs):
            within[number] = run.loop == loop or (run.parent >= 0 and within[run.parent])
        if (grid := _grid(study, loops.runs_of(loop), at)) is not None:
            yield grid, within[innermost]
    if depth:
        return
    uncertain = [run for run in loops.runs if not run.certain]
    for loop in {run.loop for run in uncertain}:
        runs = tuple(run for run in uncertain if run.loop == loop)
        inside = (lifetimes.born >= runs[0].begin) & (lifetimes.born < runs[-1].end)
        if (grid := _grid(study, runs, at)) is not None:
            yield grid, inside
    boundaries = np.array(study.steps.boundaries, np.int64)
    boundaries = boundaries[boundaries <= at]
    if not uncertain and len(boundaries):
        yield _of_steps(boundaries), lifetimes.born >= boundaries[0]


def _grid(study: DeviceStudy, runs: tuple[LoopRun, ...], at: int) -> PassGrid | None:
    runs = tuple(run for run in runs if run.begin <= at)
    if not runs:
        return None
    begins = [run.starts[run.starts <= at] for run in runs]
    ends = [np.append(starts[1:], run.end) - 1 for starts, run in zip(begins, runs, strict=True)]
    running = runs[-1].is_running(at)
    if running:
        ends[-1] = ends[-1][:-1]
    return PassGrid(
        begins=np.concatenate(begins),
        ends=np.concatenate(ends),
        run_of=np.repeat(np.arange(len(runs)), [len(starts) for starts in begins]),
        runs=runs,
        running=running,
        place=study.loops.location(runs[-1]),
        certain=runs[-1].certain,
    )


def _of_steps(boundaries: IntArray) -> PassGrid:
    return PassGrid(boundaries, boundaries[1:] - 1, np.zeros(len(boundaries), np.int64), (), True, None, True)


def _is_gathered(study: DeviceStudy, candidates: Candidates, grid: PassGrid, live: IntArray, number: IntArray) -> bool:
    """Whether a site's blocks are what a run of a loop gathers until its end.

    As earlier ones did that gave it back, or for a backward that the recorder saw to come.
    """
    if not grid.runs or not _is_of_last_run(candidates, grid, live, number):
        return False
    if grid.running and gathers_for(study, grid.place) is not None:
        return True
    return any(gathers_and_gives_back(study, one) for one in grid.runs[: int(grid.run_of[number].max())])


def _is_of_last_run(candidates: Candidates, grid: PassGrid, live: IntArray, number: IntArray) -> bool:
    """Whether next to nothing of a site's blocks is of earlier runs."""
    size, last = candidates.history.size[live], int(grid.run_of[number].max())
    return bool(size[grid.run_of[number] < last].sum() <= MOST_FROM_BEFORE * size.sum())


def _may_grow(
    study: DeviceStudy, candidates: Candidates, grid: PassGrid, inside: BoolArray, live: IntArray, number: IntArray
) -> bool:
    """Whether what a site's finished passes left can be a leak, and no work, no layers, and no list that is filled."""
    if not grid.runs:
        return True
    if all(constructs(study, grid.runs[one], candidates.at) for one in ascending(grid.run_of[number]).tolist()):
        return False
    run = grid.runs[int(grid.run_of[number].max())]
    of_last = _is_of_last_run(candidates, grid, live, number)
    if of_last and not run.is_running(candidates.at) and _is_over(study, candidates, run):
        return False
    tasks = study.loops.script.task
    if (tasks[candidates.history.lifetimes.stack[live]] >= 0).any() and not _outnumber_calls(
        study, candidates, ascending(number)
    ):
        return False
    share = _share_kept(candidates, grid, inside)
    if not grid.certain and (grid.finished <= MOST_LAYERS or share > MOST_OF_RESULTS):
        return False
    if not study.loops.script.calls_modules and _may_be_layers(study, grid, share):
        return False
    filled_elsewhere = share >= KEEPS_ALL and not is_failure(study, candidates.at)
    return not (filled_elsewhere and not _works(study, grid.runs[-1]))


def _may_be_layers(study: DeviceStudy, grid: PassGrid, share: float) -> bool:
    """Whether the only run of a loop may go through the layers of a model that is written as plain functions."""
    if len(grid.runs) > 1 or grid.finished > MOST_LAYERS or not MOST_OF_RESULTS < share < KEEPS_ALL:
        return False
    return _works(study, grid.runs[0]) and not _trains(study, grid.runs[0])


def _trains(study: DeviceStudy, run: LoopRun) -> bool:
    """Whether a run holds backwards or an optimizer's steps."""
    return bool(np.any(np.isin(study.phases[born_in(study, run.begin, run.end)], [BACKWARD, OPTIMIZER])))


def _outnumber_calls(study: DeviceStudy, candidates: Candidates, passes: IntArray) -> bool:
    """Whether blocks of more passes are alive than calls are underway: those need what they hold."""
    seen = (find_calls_in_progress(study, candidates.at), recorded_calls(study))
    return len(passes) >= max(sum(one.calls for one in calls) for calls in seen) + LEAST_PASSES


def _works(study: DeviceStudy, run: LoopRun) -> bool:
    """Whether a run calls a model, rather than only making tensors."""
    return bool(np.any(np.isin(study.phases[born_in(study, run.begin, run.end)], [FORWARD, BACKWARD, OPTIMIZER])))


def _is_over(study: DeviceStudy, candidates: Candidates, run: LoopRun) -> bool:
    """Whether a loop has ended for good: more came after it than belongs to it.

    A training loop is never over: what an evaluation or the next epoch then needs is short of what the steps left.
    """
    phases = study.phases[born_in(study, run.begin, run.end)]
    if _trains(study, run):
        return False
    if not np.any(phases == FORWARD) or _captures(study, run) or _has_returned(study, run, candidates.at):
        return True
    usual = len(phases) / len(run.starts)
    after = len(born_in(study, run.end, candidates.at + 1)) + is_failure(study, candidates.at)
    return after > usual * JUST_ENDED


def _has_returned(study: DeviceStudy, run: LoopRun, at: int) -> bool:
    """Whether a model runs at `at` that the function with the loop, which has returned, has not called.

    What is joined or computed after it without a model may be its results, of which there are too many.
    """
    stack, place, script = last_stack(study, at), study.loops.location(run), study.loops.script
    path = () if stack is None else script.paths[script.path_of[stack]]
    if MODULE not in path or place is None or run.thread:
        return False
    frames = (script.frames[number] for number in path if number >= 0)
    return all((frame.filename, frame.name) != (place.file, place.function) for frame in frames)


def _captures(study: DeviceStudy, run: LoopRun) -> bool:
    """Whether a run makes CUDA graphs, each with a private pool: that is done once, for later use."""
    return bool(np.any(in_private_pool(study.history)[born_in(study, run.begin, run.end)]))


def _share_kept(candidates: Candidates, grid: PassGrid, inside: BoolArray) -> float:
    """The part of what finished passes made that is alive, in bytes."""
    history = candidates.history
    made = candidates.eligible & inside & (history.lifetimes.born <= (grid.ends[-1] if grid.finished else -1))
    kept = made & history.lifetimes.allocated_at(candidates.at)
    return float(history.size[kept].sum()) / max(float(history.size[made].sum()), 1.0)


def _of_site(
    study: DeviceStudy,
    candidates: Candidates,
    grid: PassGrid,
    inside: BoolArray,
    live: IntArray,
    number: IntArray,
    least: int,
) -> Growth | None:
    """Whether one site grows: `live` are its live rows, `number` the passes that made them.

    `least` of them must have left something, if it has gone on from the first.
    """
    history, last = candidates.history, grid.finished
    alive = ascending(number)
    old = alive[alive < last]
    earlier = _before_the_trace(candidates, live[number < last]) if len(old) else live[:0]
    goes_on = len(old) == last or len(earlier) >= LEAST_BEFORE
    least = least if goes_on else LEAST_PASSES
    if np.any(study.categories[live] == OPTIMIZER_STATE):
        least = LEAST_OF_STATE
    if len(old) < least or not _is_steady(alive, last):
        return None
    size = history.size[live]
    curve = _at_pass_ends(candidates, grid, inside, int(candidates.key[live[0]]))[int(old[0]) :]
    if int(size.sum()) < candidates.least or (rise := straight_rise(curve)) is None:
        return None
    period = float(np.median(np.diff(alive))) if len(alive) > 1 else 1.0
    earlier = earlier if old[0] <= period else live[:0]
    before = int(history.size[earlier].sum())
    per_generation = int(size[number < last].sum()) / len(old)
    return candidates.growth(
        np.concatenate([live, earlier]),
        "generations",
        per_pass=rise.slope,
        generations=len(alive) + round(before / per_generation),
        fit=rise.fit,
        spared=int(size[number < alive[-1]].sum()) + before,
        loop=grid.place,
        passes=len(old),
        keeps_all=_share_kept(candidates, grid, inside) >= KEEPS_ALL,
        within_step=_is_within_step(study, candidates, live),
        in_another_thread=bool(grid.runs) and grid.runs[-1].thread and not in_thread(study, candidates.at),
    )


def _is_steady(alive: IntArray, last: int) -> bool:
    """Whether passes leave something at a steady pace up to the last, rather than for a while or now and then."""
    period = float(np.median(np.diff(alive))) if len(alive) > 1 else 1.0
    recent = alive[-1] >= last - max(1.0, period)
    return bool(recent and len(alive) >= LEAST_COVERED * ((alive[-1] - alive[0]) / period + 1))


def _before_the_trace(candidates: Candidates, live: IntArray) -> IntArray:
    """Blocks that the site of the growing rows `live` left behind before the first entry of a trace that wrapped."""
    size = candidates.history.size
    same = candidates.earlier & (candidates.key == candidates.key[live[0]])
    return np.flatnonzero(same & (size >= size[live].min()) & (size <= size[live].max()))


def _at_pass_ends(candidates: Candidates, grid: PassGrid, inside: BoolArray, key: int) -> FloatArray:
    """float64[finished passes]: the live bytes of one site at the end of each.

    What it held before the trace and lost since counts as well, or a buffer that replaces its tensors would seem to
    grow. Where the stack of such a block is lost, its size must tell.
    """
    lifetimes, sizes = candidates.history.lifetimes, candidates.history.size
    mine = candidates.eligible & inside & (candidates.key == key)
    alike = (lifetimes.stack < 0) & np.isin(sizes, ascending(sizes[mine & lifetimes.allocated_at(candidates.at)]))
    rows = np.flatnonzero(mine | (candidates.replaced & ((candidates.key == key) | alike)))
    size = sizes[rows].astype(np.float64)
    change = np.zeros(grid.finished + 1)
    np.add.at(change, np.searchsorted(grid.ends, lifetimes.born[rows]), size)
    np.subtract.at(change, np.searchsorted(grid.ends, lifetimes.freed[rows]), size)
    return np.asarray(np.cumsum(change)[: grid.finished])


def _is_within_step(study: DeviceStudy, candidates: Candidates, live: IntArray) -> bool:
    """Whether all of it was made in the step in progress: the rounds of a loop in it, which may end with that step."""
    boundaries = [begin for begin in study.steps.boundaries if begin <= candidates.at]
    return bool(boundaries) and int(candidates.history.lifetimes.born[live].min()) >= boundaries[-1]
