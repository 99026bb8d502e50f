"""Models that finished passes left behind: a sweep over settings, each with a model and an optimizer of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.labels.categories import ACTIVATION, GRADIENT, OPTIMIZER_STATE, PARAMETER, TEMPORARY
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.study import DeviceStudy
from oomscope.model.ordering import is_any

ALIKE = 0.5
"""Of the largest: what a pass's parameters must come to, to be a model as well and no layer that was added later."""
LEAST_MODELS = 2
"""Finished passes with a model each; one beside the model in use may be its teacher."""


class KeptModels(NamedTuple):
    """What finished passes left: `bytes` of parameters, gradients and states from `passes` of `run`.

    `trained`: whether gradients or states are among them. Parameters alone may have been added to one model.
    """

    bytes: int
    passes: int
    run: LoopRun
    trained: bool


def find_kept_models(study: DeviceStudy, entry: int) -> KeptModels | None:
    """Models of finished passes that are alive once `entry` has happened; None where no loop makes one a pass."""
    for number in study.loops.running(entry):
        run = study.loops.runs[number]
        if found := _of_run(study, run, entry):
            return found
    return None


def _of_run(study: DeviceStudy, run: LoopRun, entry: int) -> KeptModels | None:
    lifetimes, size = study.history.lifetimes, study.history.size
    starts = run.starts[run.starts <= entry]
    if len(starts) <= LEAST_MODELS:
        return None
    model = is_any(study.categories, (PARAMETER, GRADIENT, OPTIMIZER_STATE))
    rows = np.flatnonzero(model & lifetimes.allocated_at(entry) & (lifetimes.born >= starts[0]))
    number = np.searchsorted(starts, lifetimes.born[rows], side="right") - 1
    weights = study.categories[rows] == PARAMETER
    parameters = np.bincount(number[weights], weights=size[rows[weights]], minlength=len(starts))[: len(starts) - 1]
    passes = np.flatnonzero(parameters >= ALIKE * max(parameters.max(initial=0), 1))
    if len(passes) < LEAST_MODELS or not _computed(study, int(starts[0]), entry):
        return None
    kept = rows[np.isin(number, passes)]
    own = int(size[kept[study.categories[kept] == PARAMETER]].sum())
    bytes_ = int(size[kept].sum())
    return KeptModels(bytes_, len(passes), run, bytes_ - own >= ALIKE * own)


def _computed(study: DeviceStudy, begin: int, entry: int) -> bool:
    """Whether anything was computed since `begin`: the layers of one model are made one right after the other."""
    born, category = study.history.lifetimes.born, study.categories
    return bool(np.any(is_any(category, (ACTIVATION, TEMPORARY, GRADIENT)) & (born >= begin) & (born <= entry)))
