"""Logits and loss piece by piece, each made again in the backward: only one piece is there at a time."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import NEVER, SPACING, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.loss_functions import made_for_losses
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

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
    one, two = (_let_go(run, rows, run.draft.scaled(number / pieces, rows)) for number in (1, 2))
    return Edited(_with_sums(run, rows, one), (one, _with_sums(run, rows, two)), doubt=0.06)


def _let_go(run: Run, logits: BoolArray, draft: Draft) -> Draft:
    """`draft` in which pieces are kept for no evaluation, and no variable holds the logits behind their backward."""
    rows = np.flatnonzero(logits & run.during(FORWARD))
    last = run.last_of_own_step(BACKWARD)[rows]
    ends = np.where(last > run.begin[rows], np.minimum(last, draft.end[rows]), draft.end[rows])
    ends = np.where(never_backward(run)[rows], run.begin[rows] + SPACING, ends)
    return draft.lasting(rows, end=np.minimum(ends, draft.end[rows]))


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

    Behind the layers that make something of another size, it is what any line makes; before them, what is half or twice
    as large is so by chance. A loss beside another one may have its logits there. Sequences of another step may be of
    another length.
    """
    loss = losses(run) & (run.size >= LEAST)
    if not loss.any():
        return loss
    largest = _largest_of_steps(run, loss)
    alike = np.zeros(len(run.size), np.bool_)
    for factor in (0.5, 1.0, 2.0):
        alike |= np.abs(run.size - factor * largest) <= ALIKE * factor * largest
    made = np.bincount(np.maximum(run.stack[run.during(FORWARD) & alike], 0), minlength=int(run.stack.max()) + 1)
    rare = (run.stack >= 0) & (made[np.maximum(run.stack, 0)] <= 2 * max(run.steps, 1))
    before, behind = _around_layers(run, loss, alike)
    as_large = np.abs(run.size - largest) <= ALIKE * largest
    own = behind | (rare & (as_large | ~before))
    everywhere = np.unique(run.size[run.during(FORWARD) & (run.stack >= 0) & ~own])
    back = run.during(BACKWARD) & alike & ~np.isin(run.size, everywhere) & ~run.gradients & ~run.like_parameter
    return np.asarray(loss | (run.during(FORWARD) & alike & own) | back)


def _largest_of_steps(run: Run, loss: BoolArray) -> IntArray:
    """int64[requests]: bytes of the largest thing that losses of the same step make; where it has none, of all."""
    found = np.full(len(run.size), int(run.size[loss].max()))
    for step in np.unique(run.step[loss]).tolist():
        own = run.step == step
        found[own] = run.size[loss & own].max()
    return found


def _around_layers(run: Run, loss: BoolArray, alike: BoolArray) -> tuple[BoolArray, BoolArray]:
    """bool[requests], twice: what a forward makes before its first loss up to the last layer of another size; the rest.

    Where there is no such layer, neither.
    """
    before, behind = np.zeros(len(run.size), np.bool_), np.zeros(len(run.size), np.bool_)
    for rows in forwards(run):
        layers = rows[run.marked(Mark.LINEAR)[rows] & ~alike[rows]]
        last = int(layers[layers < rows[loss[rows]].min(initial=NEVER)].max(initial=-1))
        if last >= 0:
            before[rows[rows <= last]] = behind[rows[rows > last]] = True
    return before, behind
