"""What earlier tries left that failed as well: where only the trace is there, the sign of a kept exception."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.passes.loop_that_matters import may_pass
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, IntArray


def left_by_failed_tries(study: DeviceStudy, entry: int) -> int:
    """Allocated bytes that passes made which ended with a failed request of their own, before the pass of `entry`."""
    rows = _rows(study, entry)
    return int(study.history.size[rows].sum())


def _rows(study: DeviceStudy, entry: int) -> IntArray:
    failed = study.history.trace.entries(Action.OOM)
    running = study.loops.running(entry)
    if not running or not (failed < entry).any():
        return np.zeros(0, np.int64)
    starts = study.loops.runs[running[0]].starts
    starts = starts[starts <= entry]
    number = np.searchsorted(starts, failed[failed < entry], side="right") - 1
    tries = np.unique(number[(number >= 0) & (number < len(starts) - 1)])
    lifetimes = study.history.lifetimes
    rows = np.flatnonzero(lifetimes.allocated_at(entry) & may_pass(study) & (lifetimes.born >= starts[0]))
    made = np.searchsorted(starts, lifetimes.born[rows], side="right") - 1
    return rows[np.isin(made, tries)]
