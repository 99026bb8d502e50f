"""The optimizer's fused implementation, which makes no temporaries as large as the parameters."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.unfused import unfused_optimizer
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run

SLUG = "fused_optimizer"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """No temporaries of the optimizer. One that makes none, as SGD, is as large fused."""
    snapshot = run.study.snapshot
    rows = run.optimizer_temporaries & run.like_parameter
    refused = np.flatnonzero(run.draft.tried)
    rows[refused] = [unfused_optimizer(snapshot, stack) is not None for stack in run.stack[refused].tolist()]
    otherwise = any(unfused_optimizer(snapshot, stack) for stack in range(len(snapshot.stacks)))
    if not run.states.any() or not (rows.any() or otherwise):
        return None
    return Edited(run.draft.without(rows), doubt=0.03)
