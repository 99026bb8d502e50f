"""Which finished pass made a block."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.categories import OPTIMIZER_STATE
from oomscope.analysis.labels.phases import BACKWARD, OPTIMIZER
from oomscope.analysis.passes.loop_that_matters import loop_that_matters, pass_begins
from oomscope.analysis.study import DeviceStudy
from oomscope.history import BEFORE
from oomscope.model import BoolArray, Frame, IntArray
from oomscope.model.ordering import ascending

_LOSS = re.compile(r"loss|cross_entropy|kl_div")


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


def made_before(study: DeviceStudy, rows: IntArray, entry: int) -> BoolArray:
    """bool[rows]: which blocks are older than the pass that was underway at `entry`."""
    begins = pass_begins(study, entry)
    born = study.history.lifetimes.born[rows]
    return np.asarray(born < begins[-1]) if len(begins) else np.zeros(len(rows), np.bool_)


def goes_on(study: DeviceStudy, entry: int) -> bool:
    """Whether the loop whose passes are counted is still running at `entry`: what a loop filled that ended is done."""
    run = loop_that_matters(study, entry)
    return not study.loops.runs if run is None else run.is_running(entry)


def trains_within(study: DeviceStudy, entry: int) -> bool:
    """Whether most finished passes have a backward or an optimizer's step of their own: each is a whole step then."""
    begins = pass_begins(study, entry)
    if len(begins) < 2:
        return False
    telling = training_entries(study)
    number = np.searchsorted(begins, telling[(telling >= begins[0]) & (telling < begins[-1])], side="right")
    return 2 * len(ascending(number)) >= len(begins) - 1


def optimizes_within(study: DeviceStudy, entry: int) -> bool:
    """Whether an optimizer's step lies within the finished passes; without one they may be parts of a single step."""
    begins = pass_begins(study, entry)
    if len(begins) < 2:
        return False
    born = study.history.lifetimes.born[study.phases == OPTIMIZER]
    return bool(np.any((born >= begins[0]) & (born < begins[-1])))


def trained_before(study: DeviceStudy, entry: int) -> bool:
    """Whether the program had a backward or an optimizer's step before the passes that are counted.

    Of what a ring has overwritten, state of an optimizer that is older than the trace tells.
    """
    older = study.history.lifetimes.born == BEFORE
    if bool(np.any(older & (study.categories == OPTIMIZER_STATE))):
        return True
    begins = pass_begins(study, entry)
    run = loop_that_matters(study, entry)
    first = int(run.begin) if run is not None else int(begins[0]) if len(begins) else entry
    return bool(np.any(training_entries(study) < first))


def training_entries(study: DeviceStudy) -> IntArray:
    """Entries that a training step made: an optimizer's, and those of a call of ``backward``.

    `torch.autograd.grad` is no sign: solvers and meta-learners differentiate within a forward, for another backward to
    come. Such a call, and one of ``backward``, makes the first gradient under its own frames; what the engine's threads
    then make has none. Where the program is never seen to call either, those tell.
    """
    return study.once("training entries", lambda: _training_entries(study))


def _training_entries(study: DeviceStudy) -> IntArray:
    lifetimes, stacks = study.history.lifetimes, study.snapshot.stacks
    calls, differentiates = (
        stacks.holding(np.array([_is_autograds(frame, name) for frame in stacks.frames], np.bool_))
        for name in ("backward", "grad")
    )
    steps = study.phases == OPTIMIZER
    if not (calls.any() or differentiates.any()):
        steps |= study.phases == BACKWARD
    born = lifetimes.born[steps | calls[lifetimes.stack]]
    return np.sort(born[born > BEFORE])


def computes_a_loss(study: DeviceStudy, entry: int) -> bool:
    """Whether the program has called a loss of torch's by `entry`: its graphs may wait for a backward then."""
    stacks = study.snapshot.stacks
    calls = stacks.holding(np.array([_is_a_loss(frame) for frame in stacks.frames], np.bool_))
    return bool(calls[study.history.trace.stack[: entry + 1]].any())


def _is_a_loss(frame: Frame) -> bool:
    path = frame.filename.replace("\\", "/")
    is_named = path.endswith("torch/nn/functional.py") and _LOSS.search(frame.name) is not None
    return is_named or path.endswith("torch/nn/modules/loss.py")


def _is_autograds(frame: Frame, name: str) -> bool:
    path = frame.filename.replace("\\", "/")
    return frame.name == name and path.endswith(("torch/_tensor.py", "torch/autograd/__init__.py"))
