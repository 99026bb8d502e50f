"""Which finished pass made a block."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, OPTIMIZER
from oomscope.analysis.passes.loop_that_matters import loop_that_matters, pass_begins
from oomscope.analysis.study import DeviceStudy
from oomscope.model import BoolArray, FrameKind, IntArray, frame_kind


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
    return not study.loops.runs if run is None else run.is_running(entry)


def trains_within(study: DeviceStudy, entry: int) -> bool:
    """Whether most finished passes have a backward or an optimizer's step of their own: each is a whole step then.

    A loop in a library may differentiate within a forward, as solvers do; there only an optimizer's step tells.
    """
    begins = pass_begins(study, entry)
    if len(begins) < 2:
        return False
    run = loop_that_matters(study, entry)
    in_library = run is not None and frame_kind(study.loops.location(run).file) == FrameKind.LIBRARY
    lifetimes = study.history.lifetimes
    telling = lifetimes.born[np.isin(study.phases, (OPTIMIZER,) if in_library else (BACKWARD, OPTIMIZER))]
    number = np.searchsorted(begins, telling[(telling >= begins[0]) & (telling < begins[-1])], side="right")
    return 2 * len(np.unique(number)) >= len(begins) - 1


def trained_before(study: DeviceStudy, entry: int) -> bool:
    """Whether the program had a backward or an optimizer's step before the passes that are counted."""
    begins = pass_begins(study, entry)
    run = loop_that_matters(study, entry)
    first = int(run.begin) if run is not None else int(begins[0]) if len(begins) else entry
    born = study.history.lifetimes.born
    return bool(np.any(np.isin(study.phases, (BACKWARD, OPTIMIZER)) & (born < first)))
