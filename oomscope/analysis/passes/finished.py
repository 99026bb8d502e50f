"""Which finished pass made a block."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.study import DeviceStudy
from oomscope.model import BoolArray, IntArray


def passes_of(study: DeviceStudy, rows: IntArray, entry: int) -> IntArray:
    """int64[rows]: the number of the pass that made each block; -1 before the first."""
    del entry
    begins = np.array(study.steps.boundaries, np.int64)
    return np.asarray(np.searchsorted(begins, study.history.lifetimes.born[rows], side="right") - 1)


def finished_before(study: DeviceStudy, rows: IntArray, entry: int) -> BoolArray:
    """bool[rows]: which blocks were made by a pass that had finished when `entry` happened."""
    begins = np.array(study.steps.boundaries, np.int64)
    begins = begins[begins <= entry]
    if not len(begins):
        return np.zeros(len(rows), np.bool_)
    return np.asarray(study.history.lifetimes.born[rows] < begins[-1])


def pass_begins(study: DeviceStudy, entry: int) -> IntArray:
    """int64[passes]: the entries at which the passes of the loop that matters begin, up to `entry`."""
    begins = np.array(study.steps.boundaries, np.int64)
    return np.asarray(begins[begins <= entry])
