"""Gradient accumulation: micro-batches of 1/n, whose gradients live on through the forwards of the next ones."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.draft import AT_ONCE, SPACING, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run

SLUG = "accumulate"
DEFAULT = 2


def edit(run: Run, value: int | None) -> Edited | None:
    """What grows with the batch is 1/n; gradients are there from the first micro-batch on, and new ones are added."""
    if not run.trains or not run.grows_with_batch.any():
        return None
    draft = run.draft.scaled(1 / (value or DEFAULT), run.grows_with_batch)
    return Edited(accumulated(run, draft), (draft,) if not run.gradients.any() else (), doubt=0.08)


def accumulated(run: Run, draft: Draft) -> Draft:
    """`draft` in which the gradients of a step are there from its beginning; what its backward makes is added."""
    rows = np.flatnonzero(run.gradients & run.during(BACKWARD) & (run.step >= 0))
    if not len(rows):
        return draft
    begins = np.array([run.step_begins(step) for step in range(run.steps)], np.int64)[run.step[rows]]
    made = draft.begin[rows]
    kept = draft.lasting(rows, begin=begins - 1)
    return kept.added(draft.size[rows], made, made + SPACING + AT_ONCE, rows)
