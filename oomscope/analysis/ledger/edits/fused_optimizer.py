"""The optimizer's fused implementation, which makes no temporaries as large as the parameters."""

from __future__ import annotations

from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run

SLUG = "fused_optimizer"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """No temporaries of the optimizer."""
    rows = run.optimizer_temporaries & run.like_parameter
    return Edited(run.draft.without(rows), doubt=0.03) if rows.any() and run.states.any() else None
