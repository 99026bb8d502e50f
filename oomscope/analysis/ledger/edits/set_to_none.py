"""zero_grad(set_to_none=True): gradients go after the step and are made anew by the next backward."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.draft import NEVER, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.graphs.overlooked import taken_by_nobody
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.run import Run
from oomscope.model import IntArray

SLUG = "set_to_none"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """Gradients that outlive their step end with it; in later steps what was added to them takes their place.

    Nothing tells whether a program lets them go right behind its optimizer, or as the next round of its loop begins,
    behind an evaluation.
    """
    kept = _kept(run)
    if not len(kept):
        return None
    behind_optimizer = np.array([run.step_begins(step) for step in range(run.steps)] + [NEVER], np.int64)
    behind_evaluation = np.append(run.own_begins, NEVER)
    likely, other = (_let_go(run, kept, one) for one in (behind_optimizer, behind_evaluation))
    return Edited(likely, (other,), doubt=0.05)


def _let_go(run: Run, kept: IntArray, ends: IntArray) -> Draft:
    """The draft in which the `kept` gradients of a step go as the next one begins, as `ends` tells."""
    draft = run.draft.lasting(kept, end=ends[run.step[kept] + 1])
    for step in range(int(run.step[kept].min()) + 1, run.steps):
        added = _added(run, step, kept)
        draft = draft.lasting(added, end=np.full(len(added), ends[step + 1], np.int64))
    return draft


def _kept(run: Run) -> IntArray:
    """Gradients that are still there when the forward of the next step runs."""
    rows = np.flatnonzero(run.gradients & run.during(BACKWARD) & (run.step >= 0) & (run.step < run.steps - 1))
    following = np.array([run.first_of(step, BACKWARD) for step in range(run.steps)] + [NEVER], np.int64)
    begun = following[run.step[rows] + 1]
    kept: IntArray = rows[(run.end[rows] > begun) & (begun < NEVER)]
    # Of a network that no optimizer has, no zero_grad reaches the gradients.
    return kept[~np.isin(kept, taken_by_nobody(run, forwards(run)))]


def _added(run: Run, step: int, kept: IntArray) -> IntArray:
    """What the backward of a step makes to be added to gradients.

    The backwards of two steps ask for the same in the same order: what became a gradient in one is added to it in the
    other. Where they differ in how often they ask for so many bytes, the first ones count.
    """
    found = []
    for first in np.unique(run.step[kept]).tolist():
        before, now = _by_size(run, first), _by_size(run, step)
        mine = kept[run.step[kept] == first]
        for size in np.unique(run.size[mine]).tolist():
            there, here = before[size], now.get(size, kept[:0])
            places = np.searchsorted(there, mine[run.size[mine] == size])
            found.append(here[places] if len(here) == len(there) else here[: len(places)])
    return np.concatenate([kept[:0], *found])


def _by_size(run: Run, step: int) -> dict[int, IntArray]:
    """What the backward of a step asks for, in order, by its bytes."""
    rows = np.flatnonzero((run.step == step) & run.during(BACKWARD))
    return {int(size): rows[run.size[rows] == size] for size in np.unique(run.size[rows])}
