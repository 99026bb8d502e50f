"""Optimizer state in host memory: the optimizer steps there."""

from __future__ import annotations

from oomscope.analysis.labels.kinds import OPTIMIZER_STATE
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run

SLUG = "offload_state"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """No state and no temporaries of the optimizer on the device."""
    if not run.states.any():
        return None
    return Edited(run.draft.without(run.of(OPTIMIZER_STATE) | run.optimizer_temporaries), doubt=0.03)
