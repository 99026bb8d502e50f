"""What a pass that is larger than the last will need, if the rest of it grows as what it has asked for so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.labels.categories import GRADIENT, OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.passes.last_pass import last_like
from oomscope.analysis.passes.loop_that_matters import loop_that_matters
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, IntArray
from oomscope.model.arrays import FloatArray
from oomscope.model.ordering import is_any


def needs_as_larger(study: DeviceStudy, entry: int, ratio: float) -> int | None:
    """Bytes that will be allocated at the peak of the pass underway at `entry`, if all of it is as much larger.

    Each line by as much as it has grown itself: scores of attention grow with the square of a length, the layers around
    them do not. Lines that it has not come to, and backward, grow by what those come to together. None where the pass
    before it that came as far has failed as well, or there is none.

    Args:
        study: of the device.
        entry: the instant.
        ratio: how much larger this pass is, where no line tells.
    """
    run = loop_that_matters(study, entry)
    index = None if run is None or not run.is_running(entry) else last_like(study, run, entry)
    if run is None or index is None:
        return None
    begin, end = int(run.starts[index]), int(run.starts[index + 1])
    if bool((study.history.trace.action[begin:end] == Action.OOM).any()):
        return None  # a pass that failed has not shown what it needs
    allocated, lifetimes = study.history.curves.allocated, study.history.lifetimes
    highest = begin + int(np.argmax(allocated[begin : end + 1]))
    # Not what it began with: a variable may keep results of the pass before until it is well under way.
    rows = np.flatnonzero(lifetimes.allocated_at(highest - 1) & (lifetimes.born >= begin))
    rows = rows[~is_any(study.categories[rows], (PARAMETER, GRADIENT, OPTIMIZER_STATE))]
    size, by_line = study.history.size[rows], _by_line(study, run, index, entry)[lifetimes.stack[rows]]
    known = by_line > 0
    rest = float(size[known] @ by_line[known] / size[known].sum()) if size[known].any() else ratio
    return int(allocated[highest]) + round(float(size @ (np.where(known, by_line, rest) - 1)))


def _by_line(study: DeviceStudy, run: LoopRun, index: int, entry: int) -> FloatArray:
    """float[stacks + 1]: by how much each line's requests have grown, as many as both passes have; 0 where unknown."""
    now = _requests(study, int(run.starts[run.completed(entry)]), entry + 1)
    then = _requests(study, int(run.starts[index]), int(run.starts[index + 1]))
    both = np.minimum(np.bincount(now.stack, minlength=now.stacks), np.bincount(then.stack, minlength=now.stacks))
    larger, smaller = (
        np.bincount(one.stack, one.size * (one.turn < both[one.stack]), minlength=now.stacks) for one in (now, then)
    )
    larger[-1] = 0  # without a stack, nothing tells which is which
    return np.divide(larger, smaller, out=np.zeros(now.stacks), where=smaller > 0)


class _Requests(NamedTuple):
    """Requests by stack, the one without frames last: their sizes, and how many of the same stack went before each."""

    stack: IntArray
    turn: IntArray
    size: IntArray
    stacks: int


def _requests(study: DeviceStudy, begin: int, end: int) -> _Requests:
    trace, stacks = study.history.trace, len(study.roles.role)
    entries = trace.entries(Action.ALLOC, Action.OOM)
    entries = entries[(entries >= begin) & (entries < end)]
    entries = entries[np.argsort(trace.stack[entries] % stacks, kind="stable")]
    stack = trace.stack[entries].astype(np.int64) % stacks
    return _Requests(stack, np.arange(len(stack)) - np.searchsorted(stack, stack), trace.size[entries], stacks)
