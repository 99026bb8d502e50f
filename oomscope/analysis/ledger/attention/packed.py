"""Queries, keys and values of one layer, whose whole result a fused kernel keeps where one of them is a view of it.

A product of matrices copies values that lie apart, and lets the layer's result go. The kernel takes them as they lie.
Where queries and keys are copied too, all three copies are as large as the result, and nothing changes.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import NEVER, Draft
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

PARTS = 3
"""Queries, keys and values."""
_FARTHEST = 64
"""Requests from the layer to the softmax, at most."""


def with_whole_results(run: Run, draft: Draft, scores: BoolArray) -> Draft:
    """`draft` without the scores, in which the whole results of layers take the place of copies of the values.

    Args:
        run: the run.
        draft: of it.
        scores: bool[requests], softmaxes and what dropouts make of them.
    """
    made = run.during(FORWARD) & (run.stack >= 0) & ~run.of(WORKSPACE)
    rows = np.flatnonzero(made)
    is_layer, is_score = run.marked(Mark.LINEAR)[rows], scores[rows]
    layers, copies = [], []
    for place in np.flatnonzero(is_score[:-1] & ~is_score[1:]).tolist():
        copy, softmax = int(rows[place + 1]), int(rows[place])
        before = rows[max(place - _FARTHEST, 0) : place]
        whole = before[is_layer[max(place - _FARTHEST, 0) : place]][-1:]
        if not len(whole) or not _is_view_of(run, int(whole[0]), copy, softmax, before):
            continue
        layers.append(int(whole[0]))
        copies.append(copy)
    if not layers:
        return draft
    # So whatever makes copies of values again makes whole results again.
    draft = draft.scaled(float(PARTS), _only(run, copies))
    return draft.lasting(np.array(layers, np.int64), end=run.begin[copies])


def _is_view_of(run: Run, layer: int, copy: int, softmax: int, before: IntArray) -> bool:
    """Whether `copy` is of values that are a third of what `layer` made, which goes although the backward needs them.

    A product that copies queries and keys makes those right before the scores, as large as the values.
    """
    each = int(run.size[copy])
    if run.size[layer] != PARTS * each or not run.saved[copy] or run.end[copy] >= NEVER:
        return False
    products = before[(before > layer) & (run.size[before] == run.size[softmax])][:1]
    others = before[(before > layer) & (run.size[before] == each) & run.saved[before]]
    beside = others[run.stack[others] == run.stack[products].sum()] if len(products) else others
    return not run.saved[layer] and not len(beside)


def _only(run: Run, rows: list[int]) -> BoolArray:
    found = np.zeros(len(run.size), np.bool_)
    found[rows] = True
    return found
