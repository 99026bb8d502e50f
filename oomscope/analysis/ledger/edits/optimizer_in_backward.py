"""The optimizer's step within the backward: each gradient is used, and dropped, as soon as it is made."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.draft import AT_ONCE, SPACING
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run

SLUG = "optimizer_in_backward"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """Gradients live for a moment, beside one temporary of their size; the optimizer's own temporaries go."""
    rows = np.flatnonzero(run.gradients & run.during(BACKWARD))
    if not len(rows):
        return None
    ends = run.begin[rows] + SPACING + AT_ONCE
    draft = run.draft.without(run.optimizer_temporaries).lasting(rows, end=np.minimum(ends, run.end[rows]))
    likely = draft.added(run.size[rows], run.begin[rows] + 1, ends, rows)
    return Edited(likely, (draft,), doubt=0.08)
