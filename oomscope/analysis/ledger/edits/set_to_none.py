"""zero_grad(set_to_none=True): gradients go after the step and are made anew by the next backward."""

from __future__ import annotations

from collections import Counter

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.model import IntArray

SLUG = "set_to_none"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """Gradients that outlive their step end with it; in later steps what was added to them takes their place."""
    kept = _kept(run)
    if not len(kept):
        return None
    ends = np.array([run.step_begins(step) for step in range(run.steps)] + [NEVER], np.int64)
    draft = run.draft.lasting(kept, end=ends[run.step[kept] + 1])
    for step in range(int(run.step[kept].min()) + 1, run.steps):
        added = _added(run, step, Counter(run.size[kept].tolist()))
        draft = draft.lasting(added, end=np.full(len(added), ends[step + 1], np.int64))
    return Edited(draft, doubt=0.05)


def _kept(run: Run) -> IntArray:
    """Gradients that are still there when the forward of the next step runs."""
    rows = np.flatnonzero(run.gradients & run.during(BACKWARD) & (run.step >= 0) & (run.step < run.steps - 1))
    following = np.array([run.first_of(step, BACKWARD) for step in range(run.steps)] + [NEVER], np.int64)
    begun = following[run.step[rows] + 1]
    return rows[(run.end[rows] > begun) & (begun < NEVER)]


def _added(run: Run, step: int, wanted: Counter[int]) -> IntArray:
    """What the backward of a step makes to be added to gradients: one of each size for each of them."""
    found = []
    for row in np.flatnonzero((run.step == step) & run.during(BACKWARD)).tolist():
        size = int(run.size[row])
        if wanted[size] > 0:
            wanted[size] -= 1
            found.append(row)
    return np.array(found, np.int64)
