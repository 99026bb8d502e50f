"""SGD without momentum: no state at all, and it changes the parameters in place."""

from __future__ import annotations

from oomscope.analysis.labels.kinds import OPTIMIZER_STATE
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run

SLUG = "sgd"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """No state and no temporaries of the optimizer."""
    if not run.states.any():
        return None
    return Edited(run.draft.without(run.of(OPTIMIZER_STATE) | run.optimizer_temporaries), doubt=0.03)
