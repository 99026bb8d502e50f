"""Scores of attention that a program writes out, where no name says attention: told by their sizes."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.paths import Path, module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.hints import LENGTH, kind_of
from oomscope.model import BoolArray, IntArray

LARGER = 1.25
"""Times the largest output of a linear layer of the same module."""
LEAST_TOKENS = 32
LEAST_CALLS = 2
"""Of such a module in a step: a model has several layers."""
ITEM_SIZES = (1, 2, 4, 8)


def written_out(run: Run) -> BoolArray:
    """What a module with linear layers makes that the square of the number of tokens divides, unlike their outputs.

    The number of tokens is the length that the recording was told, or the side of a square mask that the module makes.
    """
    return run.study.once("scores of the ledger", lambda: _written_out(run))


def with_their_gradients(run: Run, scores: BoolArray) -> BoolArray:
    """`scores` with what the backward makes of their size, where nothing else is as large."""
    others = np.unique(run.size[run.during(FORWARD) & (run.stack >= 0) & ~scores])
    sizes = np.setdiff1d(np.unique(run.size[scores]), others)
    return np.asarray(scores | (run.during(BACKWARD) & np.isin(run.size, sizes)))


def _written_out(run: Run) -> BoolArray:
    found = np.zeros(len(run.size), np.bool_)
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & (run.step >= 0) & ~run.of(WORKSPACE))
    for own, linear in _modules(run, rows, paths(run)).values():
        largest = int(run.size[linear].max())
        far = own[run.size[own] > LARGER * largest]
        for tokens in _tokens(run, own):
            square = far[run.size[far] % (tokens * tokens) == 0]
            outputs = run.size[linear]
            tells = (outputs % tokens == 0).all() and (outputs % (tokens * tokens) != 0).all()
            if tells and len(square) >= LEAST_CALLS * max(run.steps, 1):
                found[square] = True
    return found


def _modules(run: Run, rows: IntArray, known: dict[int, Path]) -> dict[object, tuple[IntArray, IntArray]]:
    """By module that has linear layers: what its own lines make, and what its linear layers do."""
    own: dict[object, list[int]] = {}
    linear: dict[object, list[int]] = {}
    is_linear = run.marked(Mark.LINEAR)[rows]
    for row, layer in zip(rows.tolist(), is_linear.tolist(), strict=True):
        path = known[int(run.stack[row])]
        target, owner = (linear, path[:-1]) if layer else (own, path)
        target.setdefault(module_of(owner), []).append(row)
    return {module: (np.array(own[module]), np.array(linear[module])) for module in own if module in linear}


def _tokens(run: Run, own: IntArray) -> list[int]:
    """How many tokens there may be: as the recording was told, or as a square that the module makes says."""
    told = {
        value
        for step in run.study.snapshot.recorded.steps
        for name, value in (step.shape or {}).items()
        if kind_of(name) == LENGTH
    }
    sizes = np.unique(run.size[own])
    for item in ITEM_SIZES:
        side = np.round(np.sqrt(sizes // item)).astype(np.int64)
        told |= set(side[side * side * item == sizes].tolist())
    return sorted(one for one in told if one >= LEAST_TOKENS)
