"""The model in bf16: weights, gradients, states and activations half as large."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import INPUT, WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.precision import (
    embeds,
    is_mixed,
    is_of_unknown_width,
    loss_rows,
    only_full,
    scores_of_fused,
)
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray

SLUG = "bf16"
LEAST = 1 << 20
"""Bytes of a loss over many classes."""
FLAG = 64
"""Bytes up to which something is a counter or a flag."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """Everything but workspaces, counters and tokens is half as large.

    A loss may still be computed in float32, and attention that no fused kernel took may find one in 16 bits.
    """
    if is_mixed(run) or is_of_unknown_width(run) or not run.parameters.any():
        return None
    half = ~run.of(WORKSPACE) & (run.size > FLAG) & ~_tokens(run) & ~only_full(run)
    draft = run.draft.scaled(0.5, half)
    others = (run.draft.scaled(0.5, half & ~_in_full(run)), draft.without(scores_of_fused(run)))
    return Edited(draft, others, doubt=0.04)


def _in_full(run: Run) -> BoolArray:
    """What a loss makes and the backward of it, where a program casts logits for it; that cast is none before."""
    loss = loss_rows(run)
    large = loss & (run.size >= LEAST)
    sizes = np.unique(run.size[large & (run.size == run.size[large].max(initial=0))])
    back = run.during(BACKWARD) & np.isin(run.size, sizes) & ~run.gradients & ~run.like_parameter
    return np.asarray(loss | back)


def _tokens(run: Run) -> BoolArray:
    """Inputs of a model that begins with an embedding are whole numbers."""
    return run.of(INPUT) if embeds(run) else np.zeros(len(run.size), np.bool_)
