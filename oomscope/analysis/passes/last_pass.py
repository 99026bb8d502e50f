"""The last finished pass of the loop: what it needed, and what of it is still alive while the next one runs.

A variable keeps the result of a pass until the next pass assigns it anew, and a result that needs gradients keeps its
whole graph: two passes are alive at once.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from oomscope.analysis.labels.categories import (
    ACTIVATION,
    INPUT,
    TEMPORARY,
)
from oomscope.analysis.passes.loop_that_matters import born_in, loop_that_matters, may_pass, pass_begins
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, IntArray

MOST_COMPARED = 10
"""Finished passes, the last ones, whose needs are compared."""
LEAST_RISING = 3
"""Rises one after another; two may be chance."""
MOSTLY_RISING = 0.8
"""Of the passes: how many must need at least what the one before needed."""


def last_like(study: DeviceStudy, run: LoopRun, entry: int) -> int | None:
    """Number of the last finished pass that came to where the one underway at `entry` is; None where none has finished.

    A loop may act in every pass and learn in every fourth. Where no pass has come there, the last one counts.
    """
    index, there = run.completed(entry), _came_there(study, run, entry)
    if not index:
        return None
    if not len(there):
        return index - 1
    return int(np.searchsorted(run.starts, there[-1], side="right")) - 1


def came_as_far(study: DeviceStudy, entry: int) -> bool:
    """Whether a finished pass of this run of the loop has come to the line of the request at `entry`."""
    run = loop_that_matters(study, entry)
    return run is not None and run.is_running(entry) and len(_came_there(study, run, entry)) > 0


def _came_there(study: DeviceStudy, run: LoopRun, entry: int) -> IntArray:
    """The entries of finished passes of `run` that have the stack of the one at `entry`."""
    stack = study.history.trace.stack
    begin, end = int(run.starts[0]), int(run.starts[run.completed(entry)])
    return begin + np.flatnonzero((stack[begin:end] == stack[entry]) & (stack[entry] >= 0))


def left_by_last_pass(study: DeviceStudy, entry: int) -> int:
    """Bytes that the last finished pass made, that are alive at `entry`, and that are no model's and no optimizer's."""
    return int(study.history.size[rows_of_finished_passes(study, entry, passes=1)].sum())


def left_by_finished_passes(study: DeviceStudy, entry: int) -> int:
    """The same of all finished passes of this run of the loop."""
    return int(study.history.size[rows_of_finished_passes(study, entry)].sum())


def rows_of_finished_passes(study: DeviceStudy, entry: int, passes: int | None = None) -> IntArray:
    """Numbers of the lifetimes: what finished passes of this run of the loop made that is alive and no model's.

    Args:
        study: of the device.
        entry: the instant.
        passes: so many of them, the last ones; None: all.
    """
    last, run = _last_finished(study, entry), loop_that_matters(study, entry)
    if last is None or run is None:
        return np.zeros(0, np.int64)
    begin = run.begin if passes is None else int(run.starts[max(run.completed(entry) - passes, 0)])
    rows = born_in(study, begin, last[1])
    rows = rows[may_pass(study)[rows]]
    return np.asarray(rows[study.history.lifetimes.freed[rows] > entry])


def still_to_come(study: DeviceStudy, entry: int) -> int | None:
    """Bytes that the pass underway at `entry` will need beyond what is allocated, if it needs what the last one did.

    The last like it, where passes do different work. None where no pass of this run of the loop has finished, or that
    one failed. Never negative.

    Args:
        study: of the device.
        entry: the instant.
    """
    last = fitted(study, entry)
    if last is None:
        return None
    allocated = study.history.curves.allocated  # one longer than the entries: what is allocated before the first
    needed = int(allocated[last.highest]) - int(allocated[last.begin])
    began = int(last.run.starts[last.run.completed(entry)])
    return max(needed - (int(allocated[entry + 1]) - int(allocated[began])), 0)


class Fitted(NamedTuple):
    """A finished pass of `run` that came as far as the one underway.

    `number`: of the pass; `highest`: the entry before which it had most allocated.
    """

    run: LoopRun
    number: int
    highest: int

    @property
    def begin(self) -> int:
        """The entry at which it began."""
        return int(self.run.starts[self.number])


def fitted(study: DeviceStudy, entry: int) -> Fitted | None:
    """The last finished pass like the one underway at `entry`; None where there is none, or that one failed as well."""
    run = loop_that_matters(study, entry)
    index = None if run is None or not run.is_running(entry) else last_like(study, run, entry)
    if run is None or index is None:
        return None
    begin, end = int(run.starts[index]), int(run.starts[index + 1])
    if bool((study.history.trace.action[begin:end] == Action.OOM).any()):
        return None  # a pass that failed has not shown what it needs
    highest = begin + int(np.argmax(study.history.curves.allocated[begin : end + 1]))
    return Fitted(run, index, highest)


def at_work(study: DeviceStudy, entry: int, least: int = 0) -> int:
    """Bytes of activations, inputs and temporaries that the pass underway at `entry` has made and still holds.

    Where no pass is known, all that are alive: of a first forward nothing tells how much of it is still to come.

    Args:
        study: of the device.
        entry: the instant.
        least: bytes of a block from which on it counts.
    """
    begins = pass_begins(study, entry)
    lifetimes = study.history.lifetimes
    mine = (
        lifetimes.allocated_at(entry)
        & (study.history.size >= least)
        & np.isin(study.categories, (ACTIVATION, INPUT, TEMPORARY))
    )
    if len(begins):
        mine &= lifetimes.born >= begins[-1]
    return int(study.history.size[mine].sum())


def most_needed(study: DeviceStudy, entry: int) -> int | None:
    """Bytes that any finished pass of this run of the loop has needed beyond what was allocated when it began.

    None where none has finished.
    """
    run = loop_that_matters(study, entry)
    if run is None or not run.is_running(entry) or not run.completed(entry):
        return None
    starts = run.starts[: run.completed(entry) + 1].tolist()
    allocated = study.history.curves.allocated
    return max(int(allocated[begin : end + 1].max() - allocated[begin]) for begin, end in itertools.pairwise(starts))


def rise_of_needs(study: DeviceStudy, entry: int) -> int:
    """By how many bytes a pass the highest allocated memory rises, over the last finished ones; 0 where it does not.

    It rises where hardly any pass needs less than the one before it: batches sorted by length, or made larger on
    purpose. What the next pass needs is more than any has shown.
    """
    run = loop_that_matters(study, entry)
    if run is None or not run.is_running(entry):
        return 0
    loops = [run, *(study.loops.runs[number] for number in study.loops.chain(run.parent))]
    begun = [one.starts[: int(np.searchsorted(one.starts, entry, side="right"))] for one in loops]
    # That of the pass underway is among them. Epochs of a few batches each tell what those batches cannot.
    starts = next((one for one in begun if len(one) >= LEAST_RISING + 2), np.zeros(0, np.int64))[-MOST_COMPARED - 1 :]
    if not len(starts):
        return 0
    allocated = study.history.curves.allocated
    needs = [int(allocated[begin : end + 1].max()) for begin, end in itertools.pairwise(starts.tolist())]
    rises = np.diff(needs)
    mean = (needs[-1] - needs[0]) // len(rises)
    return max(mean, 0) if np.count_nonzero(rises >= 0) >= MOSTLY_RISING * len(rises) else 0


def _last_finished(study: DeviceStudy, entry: int) -> tuple[int, int] | None:
    """The entries from which to before which the last finished pass ran; None where there is none."""
    run = loop_that_matters(study, entry)
    if run is None or not run.is_running(entry):
        return None
    index = int(np.searchsorted(run.starts, entry, side="right")) - 1
    return (int(run.starts[index - 1]), int(run.starts[index])) if index > 0 else None
