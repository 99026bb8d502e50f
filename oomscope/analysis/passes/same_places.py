"""The requests of two passes of a loop at the same places: the first, the second, … of each stack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.labels.categories import PARAMETER
from oomscope.analysis.labels.stack_roles import Role
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, BoolArray, IntArray
from oomscope.model.arrays import FloatArray

SAME = 0.05
"""By how much requests may differ and still be called equal, or their ratios one ratio."""


class SamePlaces(NamedTuple):
    """Requests that both passes have, in the order of the later one: stacks, bytes there, and in the earlier one."""

    stack: IntArray
    size: FloatArray
    past: FloatArray


def at_same_places(study: DeviceStudy, run: LoopRun, earlier: int, entry: int) -> SamePlaces:
    """The requests of the pass of `run` that is underway at `entry`, with those of an `earlier` one, by its number."""
    now = _requests(study, int(run.starts[run.completed(entry)]), entry)
    then = _requests(study, int(run.starts[earlier]), int(run.starts[earlier + 1]) - 1)
    _, here, there = np.intersect1d(_places(now[0]), _places(then[0]), return_indices=True)
    in_order = np.argsort(here)
    here, there = here[in_order], there[in_order]
    return SamePlaces(now[0][here], now[1][here].astype(np.float64), then[1][there].astype(np.float64))


def most_before(study: DeviceStudy, stack: int, instant: int) -> int:
    """The most bytes that `stack` was given at once before entry `instant`, in whatever pass; 0 for none."""

    def most() -> int:
        trace = study.history.trace
        entries = trace.entries(Action.ALLOC)
        return int(trace.size[entries[(trace.stack[entries] == stack) & (entries < instant)]].max(initial=0))

    return study.once(("most before", stack, instant), most)


def _requests(study: DeviceStudy, begin: int, end: int) -> tuple[IntArray, IntArray]:
    """Stack and bytes of the requests from `begin` to `end` inclusive; a model that is made is no batch."""
    trace = study.history.trace
    entries = trace.entries(Action.ALLOC, Action.OOM)
    chosen = entries[(entries >= begin) & (entries <= end)]
    chosen = chosen[~_makes_parameters(study)[trace.stack[chosen]]]
    return trace.stack[chosen].astype(np.int64), trace.size[chosen]


def _makes_parameters(study: DeviceStudy) -> BoolArray:
    """bool[stacks + 1]: whether it makes or moves a model's parameters."""
    made = np.zeros(len(study.roles.role), np.bool_)
    made[study.history.lifetimes.stack[study.categories == PARAMETER]] = True
    return np.asarray(made & (study.roles.role == Role.LOAD))


def _places(stack: IntArray) -> IntArray:
    """A number for each request: its stack, and how many of that stack went before it."""
    order = np.argsort(stack, kind="stable")
    ordered = stack[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(stack) else order
    count = np.empty(len(stack), np.int64)
    count[order] = np.arange(len(stack)) - np.repeat(first, np.diff(np.append(first, len(stack))))
    return (stack + 1) << 32 | count
