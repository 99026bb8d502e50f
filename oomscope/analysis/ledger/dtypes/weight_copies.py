"""The copies that autocast makes of weights in 32 bits: one in 16 bits for all products of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.casts import SMALL_WEIGHT, is_mostly_frozen
from oomscope.analysis.ledger.draft import NEVER, SPACING, Draft
from oomscope.analysis.ledger.dtypes.precision import is_of_embedding
from oomscope.analysis.ledger.graphs.never_backward import evaluations
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import SCALAR, Run
from oomscope.model import IntArray

ADAPTERS = 0.5
"""Trained weights to each frozen one, at least: an adapter has two, and may be beside two layers of four only."""
SORTED = 4
"""Requests of a sort of which rows an embedding was asked for, before its gradient."""


def cast_copies(run: Run, draft: Draft) -> Draft:
    """`draft` with a copy in 16 bits of each weight of a product, from the forward until its gradient is made.

    The graph of an evaluation keeps copies of its own, as autocast is switched on for each batch. Where gradients are
    zeroed in place, later steps make none that stays; their backwards are taken for like the last one that did.
    """
    begins = [_first_forward(run, step) for step in range(run.steps)]
    rows, made = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for step in (one for one in range(run.steps) if begins[one] < NEVER):
        own, moments = _of_step(run, step)
        if len(own):
            rows, made, of = own, moments, step
        elif len(rows):
            moments = _as_in(run, of, step, made)
        draft = draft.added(run.size[rows] // 2, np.full(len(rows), begins[step] - 1), moments + SPACING, rows)
    for graph in evaluations(run):
        begin, end = int(run.begin[graph[0]]) - 1, int(run.end[graph].max())
        draft = draft.added(run.size[rows] // 2, np.full(len(rows), begin), np.full(len(rows), end), rows)
    return _with_copies_of_frozen(run, draft, begins)


def _with_copies_of_frozen(run: Run, draft: Draft, begins: Sequence[int]) -> Draft:
    """`draft` with copies of the frozen weights beside which adapters are trained, as LoRA's.

    Autocast keeps copies of trained weights only for all products; of a frozen one each product makes its own, and its
    backward needs it for the gradient of what went in. They go as the backward goes on, the first made the last.
    """
    rows = _frozen_beside_adapters(run)
    if not len(rows):
        return draft
    for step, begin in enumerate(begins):
        first, last = run.first_of(step, BACKWARD), run.last_of(step, BACKWARD)
        if begin < first < last:
            ends = np.linspace(last, first, len(rows)).astype(np.int64)
            draft = draft.added(run.size[rows] // 2, np.full(len(rows), begin), ends, rows)
    return draft


def _frozen_beside_adapters(run: Run) -> IntArray:
    """int64: the frozen weights of products, in the order in which they were made; none where few are trained."""
    parameters = np.flatnonzero(run.parameters & (run.size > SMALL_WEIGHT))
    trained = Counter(run.trained_alone.tolist())
    frozen = []
    for row in parameters.tolist():
        size = int(run.size[row])
        if not trained[size]:
            frozen.append(row)
        trained[size] -= bool(trained[size])
    sizes = Counter(run.size[frozen].tolist())
    if not is_mostly_frozen(run) or np.count_nonzero(run.trained_alone > SCALAR) < ADAPTERS * len(frozen):
        return parameters[:0]
    # A table of tokens goes into no product, unless that is the only one as large.
    _, tables = _first_layers(run, max(run.steps - 1, 0))
    return np.array([row for place, row in enumerate(frozen) if place >= tables or sizes[int(run.size[row])] == 1])


def _first_forward(run: Run, step: int) -> int:
    """The moment at which a step's own forward begins, behind an evaluation that keeps a graph; `NEVER` without one."""
    rows = run.rows_of_step(step)
    rows = rows[run.during(FORWARD)[rows]]
    graphs = evaluations(run)
    behind = max((int(graph[-1]) for graph in graphs if run.step[graph[0]] == step), default=-1)
    return int(run.begin[rows[rows > behind]].min(initial=NEVER))


def _of_step(run: Run, step: int) -> tuple[IntArray, IntArray]:
    """The gradients of a step's weights that products are given, and the moments at which those are made."""
    weights = np.unique(run.trained[run.trained > SMALL_WEIGHT])
    rows = np.flatnonzero(run.gradients & (run.step == step))
    rows = rows[np.argsort(run.begin[rows], kind="stable")]
    made = run.begin[rows]
    # What a forward needs first is the last to have its gradient.
    before, embeddings = _first_layers(run, step)
    end = _without_products(run.size[rows].tolist(), before)
    first = max(end - embeddings, 0)
    for place in range(first, end):
        made[place] = _made_as_of_a_product(run, int(rows[place]), int(run.begin[rows[first]]))
    for place in (one for one in range(len(rows)) if not first <= one < end):
        if _is_of_sorted_rows(run, int(rows[place])):
            made[place] = NEVER
    known = (made < NEVER) & np.isin(run.size[rows], weights)
    return rows[known], made[known]


def _first_layers(run: Run, step: int) -> tuple[int, int]:
    """How many products a step's forward makes before its first embedding, and how many embeddings before the next one.

    Of the embeddings that one line makes, each that is as large as the largest: there may be a loop over tables.
    """
    known = paths(run)
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & (run.step == step) & ~run.of(WORKSPACE))
    embeds = np.array([is_of_embedding(known[one]) for one in run.stack[rows].tolist()], np.bool_)
    linear, first = run.marked(Mark.LINEAR)[rows], int(np.argmax(embeds)) if embeds.any() else len(rows)
    following = np.flatnonzero(linear[first:])[:1] + first
    tables = rows[: int(following[0]) if len(following) else len(rows)]
    tables = tables[embeds[: len(tables)]]
    edges = np.flatnonzero(np.diff(run.stack[tables])) + 1
    parts = [run.size[part] for part in np.split(tables, edges) if len(part)]
    return int(linear[:first].sum()), sum(int((part == part.max()).sum()) for part in parts)


def _without_products(sizes: list[int], products: int) -> int:
    """How many of the gradients of `sizes` bytes are there before those of the first `products`, with their biases."""
    end = len(sizes)
    for _ in range(products):
        end -= 1
        if end > 0 and sizes[end] < sizes[end - 1] and sizes[end - 1] % sizes[end] == 0:
            end -= 1
    return max(end, 0)


def _made_as_of_a_product(run: Run, row: int, embeddings: int) -> int:
    """The moment at which the gradient of an embedding's weight has been made as that of a product.

    That is before the gradients of all `embeddings`. A weight that is tied to the last layer has a gradient from both,
    which are added; the embedding makes its own last. `NEVER` where the weight goes into no product: autocast copies
    none for an embedding.
    """
    alike = run.during(BACKWARD) & (run.size == run.size[row]) & (run.step == run.step[row]) & ~run.gradients
    there = alike & (run.begin < embeddings) & (run.end > run.begin[row] - SPACING)
    return int(run.begin[there].min(initial=NEVER))


def _is_of_sorted_rows(run: Run, row: int) -> bool:
    """Whether a gradient is that of an embedding, which no product is given, wherever in a model that stands.

    Its backward sorts what rows were taken: it makes both orders and their copies for the sort, then the gradient,
    then counts as many.
    """
    if row < SORTED or row + 1 >= len(run.size):
        return False
    orders, scratch = range(row - SORTED, row - SORTED + 2), range(row - SORTED + 2, row)
    alike = len({int(run.size[one]) for one in (*orders, scratch[0], row + 1)}) == 1
    sorts = all(run.end[one] < run.begin[row] for one in scratch)
    kept = all(run.end[one] > run.begin[row + 1] for one in orders)
    return bool(alike and sorts and kept and run.during(BACKWARD)[row - SORTED : row + 2].all())


def _as_in(run: Run, of: int, step: int, moments: IntArray) -> IntArray:
    """The `moments` of the backward of one step in that of another, by how much of it has been made before them."""
    before, here = (np.sort(run.begin[run.during(BACKWARD) & (run.step == one)]) for one in (of, step))
    if not len(here):
        return np.full(len(moments), NEVER - SPACING, np.int64)
    place = np.searchsorted(before, moments) * len(here) // max(len(before), 1)
    found: IntArray = here[np.minimum(place, len(here) - 1)]
    return found
