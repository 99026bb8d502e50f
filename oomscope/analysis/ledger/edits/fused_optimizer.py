"""The optimizer's fused implementation, which makes no temporaries as large as the parameters."""

from __future__ import annotations

import re

from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run

SLUG = "fused_optimizer"
_OTHERWISE = re.compile(r"^_(multi|single)_tensor_")
"""Functions of torch's optimizers that are not fused."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """No temporaries of the optimizer. One that makes none, as SGD, is as large fused."""
    rows = run.optimizer_temporaries & run.like_parameter
    otherwise = any(_OTHERWISE.search(frame.name) for frame in run.study.snapshot.stacks.frames)
    if not run.states.any() or not (rows.any() or otherwise):
        return None
    return Edited(run.draft.without(rows), doubt=0.03)
