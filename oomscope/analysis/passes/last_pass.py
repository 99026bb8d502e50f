"""The last finished pass of the loop: what it needed, and what of it is still alive while the next one runs.

A variable keeps the result of a pass until the next pass assigns it anew, and a result that needs gradients keeps its
whole graph: two passes are alive at once.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.passes.loop_that_matters import born_in, loop_that_matters, may_pass
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action


def left_by_last_pass(study: DeviceStudy, entry: int) -> int:
    """Bytes that the last finished pass made, that are alive at `entry`, and that are no model's and no optimizer's."""
    last = _last_finished(study, entry)
    return 0 if last is None else _left_by(study, entry, *last)


def left_by_finished_passes(study: DeviceStudy, entry: int) -> int:
    """The same of all finished passes of this run of the loop."""
    last, run = _last_finished(study, entry), loop_that_matters(study, entry)
    return 0 if last is None or run is None else _left_by(study, entry, run.begin, last[1])


def _left_by(study: DeviceStudy, entry: int, begin: int, end: int) -> int:
    rows = born_in(study, begin, end)
    rows = rows[may_pass(study)[rows]]
    lifetimes = study.history.lifetimes
    alive = rows[lifetimes.freed[rows] > entry]
    return int(study.history.size[alive].sum())


def still_to_come(study: DeviceStudy, entry: int) -> int | None:
    """Bytes that the pass underway at `entry` will need beyond what is allocated, if it needs what the last one did.

    None where no pass of this run of the loop has finished, or the last one failed. Never negative.
    """
    last = _last_finished(study, entry)
    if last is None:
        return None
    begin, end = last
    if bool((study.history.trace.action[begin:end] == Action.OOM).any()):
        return None  # a pass that failed has not shown what it needs
    allocated = study.history.curves.allocated  # one longer than the entries: what is allocated before the first
    needed = int(allocated[begin : end + 1].max()) - int(allocated[begin])
    return max(needed - (int(allocated[entry + 1]) - int(allocated[end])), 0)


def _last_finished(study: DeviceStudy, entry: int) -> tuple[int, int] | None:
    """The entries from which to before which the last finished pass ran; None where there is none."""
    run = loop_that_matters(study, entry)
    if run is None or not run.is_running(entry):
        return None
    index = int(np.searchsorted(run.starts, entry, side="right")) - 1
    return (int(run.starts[index - 1]), int(run.starts[index])) if index > 0 else None
