"""What a training that has ended left, while another one is underway: told from the trace alone.

Gradients and optimizer states serve the parameters they were made for. A loop that trained and has ended, in no loop
that goes on, trains no more; where states are made anew after it, they are another optimizer's, and gradients that are
made beside the old ones are another model's. Where a loop makes a model in each pass, the training of the last pass
has ended as soon as the next model is being made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.labels.categories import GRADIENT, OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.labels.phases import OPTIMIZER
from oomscope.analysis.passes.finished import training_entries
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.study import DeviceStudy
from oomscope.model import IntArray
from oomscope.model.ordering import ascending

LEAST_STEPS = 3
"""Passes with a backward each. Fewer may be the first half of a step that trains two networks in turn."""
LEAST_STATE = 0.1
"""Of the bytes of the old states or gradients: what the new ones must have come to, to be another optimizer's."""
LEAST_TENSORS = 2
"""The weight and the bias of a head; one alone may be data that was moved to the card."""


class EndedTraining(NamedTuple):
    """`bytes` of gradients and optimizer states that are alive and were made by `run`, the last of such loops.

    `rows` are their lifetimes.
    """

    bytes: int
    run: LoopRun
    rows: IntArray


def find_ended_training(study: DeviceStudy, entry: int) -> EndedTraining | None:
    """What trainings that ended before `entry` left, where another training has begun since, or a model was made."""
    runs = [run for run in study.loops.runs if _trained_and_ended(study, run, entry)]
    if not runs:
        return None
    lifetimes, size, last = study.history.lifetimes, study.history.size, max(runs, key=lambda run: run.end)
    alive, states = lifetimes.allocated_at(entry), study.categories == OPTIMIZER_STATE
    within = np.zeros(len(size), np.bool_)
    for run in runs:
        within |= (lifetimes.born >= run.begin) & (lifetimes.born < run.end)
    gradients, since = study.categories == GRADIENT, alive & (lifetimes.born >= last.end)
    # A model that is made next may still count to the loop: only the next pass of another one tells that it has ended.
    model = alive & (study.categories == PARAMETER) & (lifetimes.born > _last_backward(study, last))
    is_over = np.count_nonzero(model) >= LEAST_TENSORS
    for kind in (states, gradients):
        left, made = int(size[alive & within & kind].sum()), int(size[since & kind].sum())
        is_over |= made >= LEAST_STATE * max(left, 1) and (left > 0 or kind is states)
    rows = np.flatnonzero(alive & within & (states | gradients))
    return EndedTraining(int(size[rows].sum()), last, rows) if len(rows) and is_over else None


def _last_backward(study: DeviceStudy, run: LoopRun) -> int:
    entries = training_entries(study)
    return int(entries[(entries >= run.begin) & (entries < run.end)].max())


def _trained_and_ended(study: DeviceStudy, run: LoopRun, entry: int) -> bool:
    """Whether a loop of the main thread had whole steps for passes, and neither it nor one around it goes on."""
    if run.thread or not run.certain or run.end > entry or len(run.starts) < LEAST_STEPS:
        return False
    around = [study.loops.runs[number] for number in study.loops.chain(run.parent)]
    if any(one.end > entry and not _makes_models(study, one, run, entry) for one in around):
        return False
    if not _optimizes(study, run):
        return False  # micro-batches, whose gradients wait for one step after the loop
    entries = training_entries(study)
    number = np.searchsorted(run.starts, entries[(entries >= run.begin) & (entries < run.end)], side="right")
    return len(ascending(number)) >= LEAST_STEPS


def _makes_models(study: DeviceStudy, around: LoopRun, run: LoopRun, entry: int) -> bool:
    """Whether the pass of `around` that `run` was in made a model, and the pass underway at `entry` has as well."""
    index, last = (int(np.searchsorted(around.starts, at, side="right")) - 1 for at in (run.begin, entry))
    if index >= last:
        return False
    born = study.history.lifetimes.born[study.categories == PARAMETER]
    spans = ((int(around.starts[index]), run.begin), (int(around.starts[last]), entry + 1))
    return all(np.count_nonzero((born >= begin) & (born < end)) >= LEAST_TENSORS for begin, end in spans)


def _optimizes(study: DeviceStudy, run: LoopRun) -> bool:
    """Whether an optimizer's step made something within the run: its states, or what it makes for a moment."""
    born = study.history.lifetimes.born[study.phases == OPTIMIZER]
    return bool(np.any((born >= run.begin) & (born < run.end)))
