"""FSDP, fully sharded: every rank keeps 1/n of state, gradients and parameters, and gathers one block's at a time."""

from __future__ import annotations

from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.sharding import sharded

SLUG = "fsdp"
DEFAULT = 8


def edit(run: Run, value: int | None) -> Edited | None:
    """States, gradients, parameters and the optimizer's temporaries are 1/n; two blocks' parameters are gathered."""
    return sharded(run, value or DEFAULT, gradients=True, parameters=True)
