"""ZeRO stage 2: every rank keeps 1/n of the optimizer state and of the gradients."""

from __future__ import annotations

from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.sharding import sharded

SLUG = "zero2"
DEFAULT = 8


def edit(run: Run, value: int | None) -> Edited | None:
    """States, gradients and the optimizer's temporaries are 1/n."""
    return sharded(run, value or DEFAULT, gradients=True, parameters=False)
