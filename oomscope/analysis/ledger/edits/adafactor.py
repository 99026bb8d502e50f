"""Adafactor: a row and a column for each matrix in place of its state, whole states for vectors."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np

from oomscope.analysis.labels.kinds import OPTIMIZER_STATE, WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, OPTIMIZER
from oomscope.analysis.ledger.draft import NEVER, SPACING, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.states import first_states
from oomscope.model import BoolArray, IntArray

SLUG = "adafactor"
VECTOR = 64 << 10
"""Bytes up to which a parameter counts as a vector, a bias or a norm's weight, whose state is not factored."""
ITEM = 4
_HOPPER = re.compile(r"\bG?H(20|100|200|800)\b")
OF_HOPPER, OF_OTHERS = 32 << 20, (8 << 20) + (128 << 10)
"""Bytes of the workspace that torch gives to cuBLAS."""
OF_LT = 4 << 20
"""Bytes; that of cublasLt is smaller."""
LEAST_KNOWN = 0.95
"""Of the bytes of all parameters."""
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
    draft = _with_workspace(run, run.draft.without(dropped | run.optimizer_temporaries))
    known = _factors(run, run.size[first])
    if known:
        rows = first & np.isin(run.size, np.array(list(known)))
        share = np.array([known[size] for size in run.size[rows].tolist()])
        return Edited(_one_at_a_time(run, draft.scaled(share, rows), first), doubt=0.03)
    size = run.size[first & matrix]
    of_matrices = _rows_and_columns(size) / size
    plain = draft.scaled(of_matrices, first & matrix)
    plain = _one_at_a_time(run, plain, first)
    if not _convolves(run):
        return Edited(plain, doubt=0.03)
    of_kernels = np.where(np.isin(size, _of_recurrent_layers(run)), of_matrices, 2 / _side(size))
    factored = draft.scaled(of_kernels, first & matrix)
    factored = _one_at_a_time(run, factored, first)
    likely, other = (plain, factored) if _mostly_matrices(run) else (factored, plain)
    return Edited(likely, (other,), doubt=0.05)


def _with_workspace(run: Run, draft: Draft) -> Draft:
    """`draft` with the workspace of the product of rows and columns, where nothing else has called cuBLAS before.

    Each thread has its own, and the backward runs in another one. What a layer of a later step keeps to the end of the
    recording is no workspace, but what the program still has.
    """
    begins = np.array([run.first_of(step, OPTIMIZER) for step in range(run.steps)], np.int64)
    there = run.of(WORKSPACE) & ~run.during(BACKWARD) & (run.size >= OF_LT)
    there &= run.begin < begins.min(initial=NEVER)
    if not (begins < NEVER).any() or there.any():
        return draft
    names = [one.name or "" for one in run.study.snapshot.recorded.devices if one.index == run.study.index]
    size = OF_HOPPER if any(_HOPPER.search(name) for name in names) else OF_OTHERS
    return draft.added(np.array([size]), begins.min(keepdims=True), np.array([NEVER]))


def _factors(run: Run, states: IntArray) -> dict[int, float]:
    """By bytes of a state, what its factored one is of it, where the recording knows the shapes of most.

    A state has the shape of its parameter, which may be a part of a larger piece.
    """
    found: dict[int, list[float]] = {}
    for tensor in run.study.snapshot.recorded.tensors:
        if tensor.category in ("parameter", "optimizer_state") and tensor.shape:
            elements = math.prod(tensor.shape)
            rows, columns = elements // max(tensor.shape[-1], 1), elements // max(math.prod(tensor.shape[-2:-1]), 1)
            matrix = len(tensor.shape) > 1 and elements > 0
            found.setdefault(elements * ITEM, []).append((rows + columns) / elements if matrix else 1.0)
    told = np.isin(states, np.array(list(found), np.int64))
    if states[told].sum() < LEAST_KNOWN * states.sum():
        return {}
    return {size: sum(shares) / len(shares) for size, shares in found.items()}


def _rows_and_columns(size: IntArray) -> IntArray:
    """Bytes of a row and a column of a matrix that is four times as wide as high."""
    found: IntArray = np.round(2.5 * np.sqrt(size / ITEM) * ITEM).astype(np.int64)
    return found


def _side(size: IntArray) -> IntArray:
    elements, found = size // ITEM, np.ones(len(size), np.int64)
    for side in reversed(SIDES):
        found[elements % (side * side) == 0] = side
    return found


def _of_recurrent_layers(run: Run) -> IntArray:
    """Bytes of parameters of which fewer have gradients of their own: those of recurrent layers lie in one piece."""
    if not _calls_of(run, "rnn"):
        return np.zeros(0, np.int64)
    own = Counter(run.trained_alone.tolist())
    known = Counter(run.size[run.parameters].tolist())
    with_states = set(run.size[run.states].tolist())
    return np.array([size for size, count in known.items() if size in with_states and own[size] < count], np.int64)


def _convolves(run: Run) -> bool:
    return bool(_calls_of(run, "conv"))


def _mostly_matrices(run: Run) -> bool:
    """Whether more lines call linear layers than convolutions, so that a weight that no side divides is a matrix."""
    return _calls_of(run, "linear") > _calls_of(run, "conv")


def _calls_of(run: Run, module: str) -> int:
    """How many requests a forward's layers of one kind make."""
    stacks, name = run.study.snapshot.stacks, f"torch/nn/modules/{module}.py"
    inside = [
        any(frame.filename.replace("\\", "/").endswith(name) for frame in stacks[at]) for at in range(len(stacks))
    ]
    return int(np.count_nonzero(np.array([*inside, False])[run.stack]))


def _one_at_a_time(run: Run, draft: Draft, first: BoolArray) -> Draft:
    """Two temporaries of the largest of the `first` states in every step up to the last that trains."""
    trains = [step for step in range(run.steps) if run.first_of(step, BACKWARD, OPTIMIZER) < NEVER]
    begins = np.array([run.last_of(step, *range(5)) for step in range(max(trains, default=-1) + 1)], np.int64)
    begins = np.repeat(begins[(begins > 0) & (begins < NEVER)], 2)
    size = np.full(len(begins), int(run.size[first].max(initial=1)), np.int64)
    return draft.added(size, begins - 2, begins - 2 + SPACING // 4)
