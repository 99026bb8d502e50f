"""A fused attention kernel in place of scores that are written out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.attention.biased import PROJECTIONS, attends, biased_by_layers, learned, masks_for_biases
from oomscope.analysis.ledger.attention.named_scores import named_scores
from oomscope.analysis.ledger.attention.packed import with_whole_results
from oomscope.analysis.ledger.attention.scores import windows, with_their_gradients, written_out
from oomscope.analysis.ledger.attention.written_out import EAGER, LEAST_SCORES
from oomscope.analysis.ledger.casts import has_halves, is_mixed
from oomscope.analysis.ledger.draft import Draft
from oomscope.analysis.ledger.dtypes.products import CONVOLUTION
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.paths import module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, package_path

SLUG = "sdpa"
PADDED = 8 / 7
"""Times as large may be a bias that a kernel takes as a mask, whose rows are of eight numbers, as the scores were: the
least that windows of 7 × 7 become."""
_PADDED = "and_mask"
"""A function of transformers' that joins the mask of the padding with that of what comes later."""
_BEHIND = 5
"""Requests from the scores to the next layer, at most: a copy of the values, the result, a copy of that."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """Without the scores, what is made of them, and their gradients in the backward."""
    found = _without_scores(run)
    if found is None or not _groups_queries(run):
        return found
    return replace(found, likely=run.draft, others=(found.likely, *found.others), beside_halves=found.likely)


def _without_scores(run: Run) -> Edited | None:
    named, told = named_scores(run), with_their_gradients(run, written_out(run))
    if named is None:
        given = _masks(run)
        drafts = [run.draft.without(told & ~given), *([run.draft.without(told)] if given.any() else [])]
        drafts += [run.draft] if _are_of_a_convolution(run, told) else []
        return Edited(drafts[0], tuple(drafts[1:]), doubt=0.08) if told.any() else _by_softmaxes(run)
    inside, back = named
    if int(run.size[inside].max()) in biased_by_layers(run):
        return None
    more = attends(run)
    every = inside | back | told | (more & ~learned(run, more) & ~masks_for_biases(run))
    drafts = [_fused(run, gone, inside) for gone in (every, inside)]
    return Edited(drafts[0], tuple(drafts[1:]), doubt=0.08)


def _by_softmaxes(run: Run) -> Edited | None:
    """Without the scores that only their softmaxes tell, but for those to which a learned bias is added.

    Where a layer makes that for the largest and it is the same for many rows, nothing is saved. A bias of its own for
    each score is kept as a mask.
    """
    found = attends(run)
    if not found.any() or _are_of_a_convolution(run, found) or int(run.size[found].max()) in biased_by_layers(run):
        return None
    biased = learned(run, found)
    likely = found & ~biased & ~masks_for_biases(run)
    drafts = [_fused(run, every, found) for every in (likely, found)]
    padded = drafts[0].scaled(PADDED, biased & run.saved)
    return Edited(drafts[0], (drafts[1], padded), doubt=0.08)


def _fused(run: Run, gone: BoolArray, scores: BoolArray) -> Draft:
    """The draft without what is `gone`, with what fused kernels keep in place of the `scores`."""
    return _with_results(run, with_whole_results(run, run.draft.without(gone), scores), scores)


def _with_results(run: Run, draft: Draft, scores: BoolArray) -> Draft:
    """`draft` in which each result of attention is there as long as its scores were: the kernel goes back through it.

    The next layer mostly keeps it as well, unless that is not trained.
    """
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & ~run.of(WORKSPACE))
    is_score, is_layer = scores[rows], run.marked(Mark.LINEAR)[rows]
    results, ends = [], []
    for place in np.flatnonzero(is_score[:-1] & ~is_score[1:]).tolist():
        behind = rows[place + 1 : place + 1 + _BEHIND]
        behind = behind[: int(np.argmax(is_layer[place + 1 : place + 1 + _BEHIND]))]
        if len(behind) and not run.saved[behind[-1]] and run.saved[rows[place]]:
            results.append(int(behind[-1]))
            ends.append(int(run.end[rows[place]]))
    return draft.lasting(np.array(results, np.int64), end=np.array(ends, np.int64))


def _groups_queries(run: Run) -> bool:
    """Whether transformers repeats keys and values for groups of queries, in full precision.

    It then has the fused function do so (``enable_gqa``), for which only kernels in 16 bits are made: the scores are
    written out as they were. Not so where samples are padded, for then it gives that function a mask.
    """
    frames = run.study.snapshot.stacks.frames
    if any(one.name == _PADDED and _is_of_transformers(one.filename) for one in frames):
        return False
    repeats = any(one.name == "repeat_kv" and _is_of_transformers(one.filename) for one in frames)
    return (repeats or _packs_fewer_keys(run)) and not is_mixed(run) and not has_halves(run)


def _packs_fewer_keys(run: Run) -> bool:
    """Whether a layer makes queries and fewer keys and values at once, before transformers' attention repeats these."""
    stacks, known = run.study.snapshot.stacks, paths(run)
    eager = [any(one.name == EAGER and _is_of_transformers(one.filename) for one in stacks[at]) for at in known]
    inside = np.isin(run.stack, [at for at, is_eager in zip(known, eager, strict=True) if is_eager])
    layers = np.flatnonzero(run.marked(Mark.LINEAR) & run.during(FORWARD) & (run.size >= LEAST_SCORES)).tolist()
    around = [(int(run.size[one]), int(run.size[other])) for one, other in pairwise(layers) if inside[one:other].any()]
    keys = [divmod(packed - each, PROJECTIONS - 1) for packed, each in around]
    fewer = [
        not rest and 0 < one < each and each % one == 0 for (one, rest), (_, each) in zip(keys, around, strict=True)
    ]
    return bool(fewer) and all(fewer)


def _is_of_transformers(filename: str) -> bool:
    return (package_path(filename) or "").startswith("transformers/")


def _are_of_a_convolution(run: Run, scores: BoolArray) -> bool:
    """Whether a convolution makes the queries: their channels lie apart then, and fused kernels take no such ones.

    Unless the program copies them into another layout before, the scores are written out as they were.
    """
    known, forward = paths(run), run.during(FORWARD)
    first = np.flatnonzero(scores & forward)[:1]
    layers = np.flatnonzero(run.marked(Mark.LINEAR) & forward & (np.arange(len(run.size)) < first.sum()))
    if not len(first) or not len(layers):
        return False
    scored, layer = (known[int(run.stack[row])] for row in (first[0], layers[-1]))
    # Before all layers there may be one that cuts an image into patches, of another module.
    return bool(CONVOLUTION.search(layer[-1][0][0])) and module_of(layer[:-1]) == module_of(scored)


def _masks(run: Run) -> BoolArray:
    """bool[requests]: in place of masks that the kernel is given, what is kept of scores within windows.

    Where some of the calls add one thing more to their scores than the others, that is a mask for each window, which
    together with the bias of relative places is as large as the scores.
    """
    found = np.zeros(len(run.size), np.bool_)
    rows = np.flatnonzero(written_out(run)) if windows(run) else np.zeros(0, np.int64)
    kept = np.flatnonzero(run.saved[rows])
    if len(kept):
        stages = np.diff(kept, prepend=-1)
        found[rows[kept[stages > stages.min()]]] = True
    return found
