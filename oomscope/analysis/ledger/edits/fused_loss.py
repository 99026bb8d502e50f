"""Logits and loss piece by piece, each made again in the backward: only one piece is there at a time."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import NEVER, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.loss_functions import made_for_losses
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray

SLUG = "fused_loss"
DEFAULT = 8
LEAST = 1 << 20
"""Bytes of a loss over few classes, which is not worth it."""
ALIKE = 0.02
"""The share by which logits and what the loss makes of them may differ: the last token has no successor."""


def edit(run: Run, value: int | None) -> Edited | None:
    """Everything as large as the logits, in either precision, is 1/n.

    Each piece has a gradient of the weight that makes the logits, beside the sum of those before. Where the loss itself
    is small, what the function that calls it makes is 1/n.
    """
    rows, pieces = _logits(run), value or DEFAULT
    if not rows.any():
        others = made_for_losses(run)
        return Edited(run.draft.scaled(1 / pieces, others), doubt=0.15) if others.any() else None
    one, two = (run.draft.scaled(number / pieces, rows) for number in (1, 2))
    return Edited(_with_sums(run, rows, one), (one, _with_sums(run, rows, two)), doubt=0.06)


def _with_sums(run: Run, logits: BoolArray, draft: Draft) -> Draft:
    """`draft` with one more gradient as large as the first that follows those of the logits, to the backward's end."""
    weights = run.during(BACKWARD) & run.like_parameter
    size, begin, end = [], [], []
    for step in range(run.steps):
        first = np.flatnonzero(logits & run.during(BACKWARD) & (run.step == step))[:1]
        after = np.flatnonzero(weights & (run.step == step) & (run.begin > run.begin[first].min(initial=NEVER)))[:1]
        if len(after):
            size.append(int(run.size[after[0]]))
            begin.append(int(run.begin[first[0]]) - 1)
            end.append(run.last_of(step, BACKWARD))
    return draft.added(*(np.array(column, np.int64) for column in (size, begin, end)))


def _logits(run: Run) -> BoolArray:
    """What a loss makes; of its size, what one line makes once in a step, and what the backward makes.

    The layers behind which it stands make something of another size.
    """
    loss = losses(run) & (run.size >= LEAST)
    if not loss.any():
        return loss
    largest = float(run.size[loss].max())
    alike = np.zeros(len(run.size), np.bool_)
    for factor in (0.5, 1.0, 2.0):
        alike |= np.abs(run.size - factor * largest) <= ALIKE * factor * largest
    made = np.bincount(np.maximum(run.stack[run.during(FORWARD) & alike], 0), minlength=int(run.stack.max()) + 1)
    rare = (run.stack >= 0) & (made[np.maximum(run.stack, 0)] <= 2 * max(run.steps, 1))
    rare &= ~_before_logits(run, loss, alike)
    everywhere = np.unique(run.size[run.during(FORWARD) & (run.stack >= 0) & ~rare])
    back = run.during(BACKWARD) & alike & ~np.isin(run.size, everywhere) & ~run.gradients & ~run.like_parameter
    return np.asarray(loss | (run.during(FORWARD) & alike & rare) | back)


def _before_logits(run: Run, loss: BoolArray, alike: BoolArray) -> BoolArray:
    """bool[requests]: what a forward makes before its first loss and the layers whose results are not as large.

    What is there as large as logits, or half or twice as large, is so by chance.
    """
    found = np.zeros(len(run.size), np.bool_)
    for rows in forwards(run):
        layers = rows[run.marked(Mark.LINEAR)[rows] & ~alike[rows]]
        layers = layers[layers < rows[loss[rows]].min(initial=len(run.size))]
        found[rows[rows <= layers.max(initial=-1)]] = True
    return found
