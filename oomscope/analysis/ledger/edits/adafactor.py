"""Adafactor: a row and a column for each matrix in place of its state, whole states for vectors."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import OPTIMIZER_STATE
from oomscope.analysis.ledger.draft import NEVER, SPACING, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.states import first_states
from oomscope.model import IntArray

SLUG = "adafactor"
VECTOR = 64 << 10
"""Bytes up to which a parameter counts as a vector, a bias or a norm's weight, whose state is not factored."""
ITEM = 4
SIDES = (7, 5, 3)
"""Of the kernel of a convolution. torch factors the last two sides of a weight, so each of the two states has as many
elements as the weight divided by the side: of a 1 × 1 convolution, as many as the weight."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """Of each pair of states a row and a column stay; the temporaries are those of one parameter at a time."""
    if not run.states.any():
        return None
    first = first_states(run)
    matrix = run.states & (run.size > VECTOR)
    dropped = run.of(OPTIMIZER_STATE) & ~first
    draft = run.draft.without(dropped | run.optimizer_temporaries)
    plain = draft.scaled(_rows_and_columns(run.size[first & matrix]) / run.size[first & matrix], first & matrix)
    plain = _one_at_a_time(run, plain)
    if not _convolves(run):
        return Edited(plain, doubt=0.03)
    factored = draft.scaled(2 / _side(run.size[first & matrix]), first & matrix)
    return Edited(_one_at_a_time(run, factored), (plain,), doubt=0.05)


def _rows_and_columns(size: IntArray) -> IntArray:
    """Bytes of a row and a column of a matrix that is four times as wide as high."""
    found: IntArray = np.round(2.5 * np.sqrt(size / ITEM) * ITEM).astype(np.int64)
    return found


def _side(size: IntArray) -> IntArray:
    elements, found = size // ITEM, np.ones(len(size), np.int64)
    for side in reversed(SIDES):
        found[elements % (side * side) == 0] = side
    return found


def _convolves(run: Run) -> bool:
    frames = run.study.snapshot.stacks.frames
    return any(frame.filename.replace("\\", "/").endswith("torch/nn/modules/conv.py") for frame in frames)


def _one_at_a_time(run: Run, draft: Draft) -> Draft:
    """Two temporaries of the largest parameter in every step of the optimizer."""
    begins = np.array([run.last_of(step, *range(5)) for step in range(run.steps)], np.int64)
    begins = np.repeat(begins[(begins > 0) & (begins < NEVER)], 2)
    size = np.full(len(begins), int(run.trained.max(initial=1)), np.int64)
    return draft.added(size, begins - 2, begins - 2 + SPACING // 4)
