"""What earlier tries left that failed as well: where only the trace is there, the sign of a kept exception."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.passes.calls_in_progress import find_calls_in_progress
from oomscope.analysis.passes.loop_that_matters import may_pass
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.study import DeviceStudy
from oomscope.history import DeviceHistory
from oomscope.model import Action, IntArray
from oomscope.model.ordering import among, ascending


def left_by_failed_tries(study: DeviceStudy, entry: int) -> int:
    """Allocated bytes that passes made which ended with a failed request of their own, before `entry`.

    The pass of `entry` itself does not count; the loop may have ended, where what follows it no longer fits.
    """
    rows = _rows(study, entry)
    return int(study.history.size[rows].sum())


def from_before_a_failure(study: DeviceStudy, entry: int) -> int:
    """Allocated bytes that were made before an earlier request failed, and are not made once for good.

    Where only the trace is there, nobody can tell whether the call that failed goes on, or an exception keeps them. A
    failure after which the same line asks again is no end: libraries try plans until one fits.
    """
    given_up = given_up_failures(study.history)
    given_up = given_up[given_up < entry]
    if not len(given_up):
        return 0
    lifetimes = study.history.lifetimes
    before = lifetimes.allocated_at(entry) & may_pass(study) & (lifetimes.born < given_up[-1])
    return int(study.history.size[before].sum())


def given_up_failures(history: DeviceHistory) -> IntArray:
    """int64[failures]: the entries of failures after which the same line did not ask again at once."""
    failed = history.trace.entries(Action.OOM)
    return np.asarray(failed[~among(failed, failures_tried_again(history))])


def failures_tried_again(history: DeviceHistory) -> IntArray:
    """int64[failures]: the entries of failures after which the same line asked again at once.

    Libraries that try one plan after another, each with a smaller workspace, go on as if nothing had been.
    """
    events = history.trace.entries(Action.ALLOC, Action.OOM)
    stack, action = history.trace.stack[events], history.trace.action[events]
    return np.asarray(events[:-1][(action[:-1] == Action.OOM) & (stack[:-1] == stack[1:])])


def _rows(study: DeviceStudy, entry: int) -> IntArray:
    failed = study.history.trace.entries(Action.OOM)
    failed = failed[failed < entry]
    run = _run(study, entry, failed)
    if run is None or (run.thread and find_calls_in_progress(study, entry)):
        # Calls that run side by side mix: what lies between two beginnings may be of one that still runs.
        return np.zeros(0, np.int64)
    starts = run.starts[run.starts <= entry]
    finished = len(starts) - run.is_running(entry)
    number = np.searchsorted(starts, failed[failed < run.end], side="right") - 1
    tries = ascending(number[(number >= 0) & (number < finished)])
    lifetimes = study.history.lifetimes
    rows = np.flatnonzero(
        lifetimes.allocated_at(entry) & may_pass(study) & (lifetimes.born >= starts[0]) & (lifetimes.born < run.end)
    )
    made = np.searchsorted(starts, lifetimes.born[rows], side="right") - 1
    return rows[np.isin(made, tries)]


def _run(study: DeviceStudy, entry: int, failed: IntArray) -> LoopRun | None:
    """The outermost run of a loop that `entry` is in, else the last before it; None where no request had failed."""
    runs, running = study.loops.runs, study.loops.running(entry)
    if not len(failed):
        return None
    if running:
        return runs[running[0]]
    ended = [run for run in runs if run.parent < 0 and run.end <= entry]
    return ended[-1] if ended else None
