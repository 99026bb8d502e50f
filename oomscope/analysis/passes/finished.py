"""Which finished pass made a block."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, OPTIMIZER
from oomscope.analysis.passes.loop_that_matters import loop_that_matters, pass_begins
from oomscope.analysis.study import DeviceStudy
from oomscope.model import BoolArray, IntArray


def passes_of(study: DeviceStudy, rows: IntArray, entry: int) -> IntArray:
    """int64[rows]: the number of the pass that made each block; -1 before the first."""
    begins = pass_begins(study, entry)
    return np.asarray(np.searchsorted(begins, study.history.lifetimes.born[rows], side="right") - 1)


def finished_before(study: DeviceStudy, rows: IntArray, entry: int) -> BoolArray:
    """bool[rows]: which blocks were made by a pass that had finished when `entry` happened."""
    begins = pass_begins(study, entry)
    if not len(begins):
        return np.zeros(len(rows), np.bool_)
    run = loop_that_matters(study, entry)
    born = study.history.lifetimes.born[rows]
    if run is None or run.is_running(entry):
        return np.asarray((born >= begins[0]) & (born < begins[-1]))
    return np.asarray((born >= begins[0]) & (born < run.end))


def goes_on(study: DeviceStudy, entry: int) -> bool:
    """Whether the loop whose passes are counted is still running at `entry`: what a loop filled that ended is done."""
    run = loop_that_matters(study, entry)
    return run is None or run.is_running(entry)


def trains_within(study: DeviceStudy, entry: int) -> bool:
    """Whether most finished passes have a backward or an optimizer's step of their own: each is a whole step then."""
    begins = pass_begins(study, entry)
    if len(begins) < 2:
        return False
    lifetimes = study.history.lifetimes
    telling = lifetimes.born[np.isin(study.phases, (BACKWARD, OPTIMIZER))]
    number = np.searchsorted(begins, telling[(telling >= begins[0]) & (telling < begins[-1])], side="right")
    return 2 * len(np.unique(number)) >= len(begins) - 1


def trains(study: DeviceStudy, entry: int) -> bool:
    """Whether anything before `entry` speaks of training."""
    born = study.history.lifetimes.born
    return bool(np.any(np.isin(study.phases, (BACKWARD, OPTIMIZER)) & (born <= entry)))
