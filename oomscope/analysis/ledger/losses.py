"""What a loss over logits makes, in a forward."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import Path, paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

LEAST = 1 << 20
"""Bytes of logits over many classes."""
WIDER = 4
"""Times as large as what any other product makes are logits over a vocabulary."""
LEAST_MADE = 2
"""Requests as large as logits: they, and what is made of them."""
SHIFTED = 1 + 1 / 8
"""Times as many logits as those without the last token of each sequence: of nine tokens or more."""
_CONVOLUTION = "torch/nn/modules/conv.py"


def losses(run: Run) -> BoolArray:
    """bool[requests]: what functions make that are losses by name; where no name tells, what is made of logits.

    ``logits.log_softmax(-1)`` is a method of a tensor, which has no frame of its own. A loss of a few numbers, as of
    what each sequence scores, may have a name beside it.
    """
    named = run.marked(Mark.LOSS) & run.during(FORWARD)
    if (run.size[named] >= LEAST).any():
        return named
    return named | run.study.once("losses of the ledger", lambda: _unnamed(run))


def _unnamed(run: Run) -> BoolArray:
    known = paths(run)
    found = np.zeros(len(run.size), np.bool_)
    for rows in forwards(run):
        found[_made_of_logits(run, rows[run.size[rows] >= LEAST], known)] = True
    return found


def _made_of_logits(run: Run, rows: IntArray, known: dict[int, Path]) -> IntArray:
    """What follows the last product of a forward, where that is by far the largest one, and is as large.

    ``F.linear(h, embedding.weight)`` has no frame that tells a product; what it makes lies behind the last layer.
    """
    is_product = run.marked(Mark.LINEAR)[rows]
    products = rows[is_product]
    if not len(products) or known[int(run.stack[products[-1]])][-1][0][0].endswith(_CONVOLUTION):
        return rows[:0]
    size = int(run.size[products[-1]])
    others = run.size[products[run.size[products] != size]]
    if size < WIDER * int(others.max(initial=0)):
        return _behind_layers(run, rows, products)
    logits = np.flatnonzero(is_product[:-1] & ~is_product[1:] & (run.size[rows[:-1]] == size))
    made = [row for place in logits.tolist() for row in _of_one_line(run, rows[place + 1 :])]
    found = np.array(made, np.int64)
    as_large: IntArray = found[(run.size[found] <= size) & (run.size[found] * SHIFTED >= size)]
    return as_large


def _of_one_line(run: Run, rows: IntArray) -> list[int]:
    """The first of `rows`, and those that the same line makes next."""
    others = np.flatnonzero(run.stack[rows] != run.stack[rows[0]])
    found: list[int] = rows[: others[0] if len(others) else len(rows)].tolist()
    return found


def _behind_layers(run: Run, rows: IntArray, products: IntArray) -> IntArray:
    """What is made of logits that no layer makes: of one size, by far larger than all that layers make.

    The first behind some layers are the logits; there may be several models, as one and its reference.
    """
    far = rows[run.size[rows] >= WIDER * int(run.size[products].max())]
    if len(far) < LEAST_MADE or (run.size[far] != run.size[far[0]]).any():
        return rows[:0]
    behind = np.searchsorted(products, far)
    found: IntArray = far[1:][np.diff(behind) == 0]
    return found
