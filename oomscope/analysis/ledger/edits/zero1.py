"""ZeRO stage 1: every rank keeps 1/n of the optimizer state."""

from __future__ import annotations

from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.sharding import sharded

SLUG = "zero1"
DEFAULT = 8


def edit(run: Run, value: int | None) -> Edited | None:
    """States and the optimizer's temporaries are 1/n."""
    return sharded(run, value or DEFAULT, gradients=False, parameters=False)
