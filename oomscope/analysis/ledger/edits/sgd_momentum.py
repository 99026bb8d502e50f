"""SGD with momentum: one state for each parameter, and it changes the parameters in place."""

from __future__ import annotations

from oomscope.analysis.labels.kinds import OPTIMIZER_STATE
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.states import first_states, per_parameter

SLUG = "sgd_momentum"
MORE_THAN_ONE = 1.2


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """The first state of each parameter stays; the others and the temporaries of the optimizer go."""
    if per_parameter(run) < MORE_THAN_ONE:
        return None
    dropped = run.of(OPTIMIZER_STATE) & ~first_states(run)
    return Edited(run.draft.without(dropped | run.optimizer_temporaries), doubt=0.05)
