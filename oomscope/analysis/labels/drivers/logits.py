"""What a loss over a vocabulary works on: logits, their softmax, and the gradients of both."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import among, ascending

SLUG = "logits"
CATEGORIES = (kinds.ACTIVATION, kinds.TEMPORARY)
BECOMES = None
EVIDENCE = ("allocated_in_a_loss", "as_large_as_what_the_loss_made")
LOOKS_LIKE = ("output_of_a_wide_linear_layer", "attention_scores")

SHORTEST = 16
"""Tokens of a sequence. Of longer ones, logits with and without their last token are nearly as large."""
LEAST_BYTES = 1 << 20
"""Of a loss's block; only of larger ones are others of the same size looked for. Below, the sizes of many tensors are
equal by chance, and no verdict hangs on them."""


def find(live: LiveBlocks) -> BoolArray:
    """What a loss made, what is as large in either precision and made as rarely, and the gradients of those."""
    loss = live.passing & live.marked(Mark.LOSS) & (live.role != Role.UNFRAMED)
    sizes = ascending(live.bytes[loss & (live.bytes >= LEAST_BYTES)])
    if not len(sizes):
        return np.asarray(loss)
    # Half and twice: logits in 16 bits beside a softmax in float32.
    alike = np.isin(live.bytes, np.concatenate([sizes, sizes // 2, sizes * 2]))
    alike |= _are_a_token_longer(live.bytes, sizes)
    count = np.bincount(live.stack[live.stack >= 0], minlength=1)
    most = int(count[live.stack[loss]].max())
    # One more: the pass before may not have been dropped yet. What every layer makes is more often there.
    rare = (live.stack >= 0) & (count[np.maximum(live.stack, 0)] <= most + 1)
    chosen = loss | (live.passing & alike & rare)
    others = ascending(live.bytes[live.passing & ~chosen & (live.stack >= 0)])
    gradient = live.passing & (live.stack < 0) & among(live.bytes, sizes[~among(sizes, others)])
    return np.asarray(chosen | gradient)


def _are_a_token_longer(bytes_: IntArray, sizes: IntArray) -> BoolArray:
    """bool[blocks]: whether one of `sizes` is `bytes_` without a token of each sequence: a loss for the next token."""
    there = ascending(bytes_)
    first, last = np.searchsorted(there, sizes, "right"), np.searchsorted(there, sizes + sizes // SHORTEST, "right")
    found = [np.zeros(0, np.int64)]
    for size, low, high in zip(sizes.tolist(), first.tolist(), last.tolist(), strict=True):
        near = there[low:high]
        found.append(near[size % (near - size) == 0])
    return among(bytes_, ascending(np.concatenate(found)))
