"""Scores that torch's own attention writes out, where no fused kernel takes what it is given."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.attention.scores import told
from oomscope.analysis.ledger.paths import module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.kinds import BATCH
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import among, ascending

_FUSED = re.compile(r"scaled_dot_product|sdpa")
EAGER = "eager_attention_forward"
"""A function of transformers' that writes out scores."""
LEAST_SCORES = 1 << 20
"""Bytes of scores that matter."""
LEAST_CALLS = 2
"""Of a module which attends, in a step."""
AT_ONCE = 8
"""Requests from a bias to the scores that it is added to, at most: queries and keys are scaled in between."""


def scores_of_fused(run: Run) -> BoolArray:
    """Scores that torch's own attention writes out, for no fused kernel took what it was given."""
    inside = _inside(run)
    linear = run.size[run.marked(Mark.LINEAR) & run.during(FORWARD)]
    per_block = int(np.median(linear)) if len(linear) else 0
    large = inside & (run.size > 2 * per_block) & (run.size >= LEAST_SCORES) & (per_block > 0)
    scores = run.size[large]
    outside = run.size[run.during(FORWARD) & ~inside & (run.stack >= 0)]
    only = ascending(scores[~among(scores, outside)])
    only = only[[not _has_bias(run, inside & (run.size == size)) for size in only.tolist()]]
    found: BoolArray = among(run.size, only) & run.during(FORWARD, BACKWARD) & (inside | run.during(BACKWARD))
    return found


def _has_bias(run: Run, scores: BoolArray) -> bool:
    """Whether a bias is added to scores: one for all samples, that the first module which attends makes and all use.

    Or one that each of them makes as large as its scores: a mask alone would have no heads. No fused kernel takes such
    a one in 16 bits that takes none in float32.
    """
    rows = np.flatnonzero(scores & (run.step == run.step[scores].max(initial=-1)))
    if not len(rows):
        return False
    known, first = paths(run), int(rows[0])
    own = known[int(run.stack[first])]
    if _is_given_by_its_module(run, rows):
        return True
    before = np.flatnonzero((run.begin < run.begin[first]) & (run.step == run.step[first]) & run.during(FORWARD))
    before = before[
        (run.stack[before] >= 0) & (run.end[before] > run.begin[rows[-1]]) & ~run.marked(Mark.LINEAR)[before]
    ]
    shared = before[np.isin(run.size[before] * np.array([*told(run, BATCH), 0])[:, None], run.size[first]).any(axis=0)]
    within = [known[one][: len(own)] for one in run.stack[shared].tolist()]
    return any(module_of(path) == module_of(own) and path[-1] != own[-1] for path in within)


def _is_given_by_its_module(run: Run, rows: IntArray) -> bool:
    """Whether a function of the module other than attention makes the first of the scores of each call, to be added."""
    stacks = run.stack[rows]
    own = int(np.bincount(stacks).argmax())
    # What a call returns may be as large as queries; the next call makes other things before its own.
    behind = np.flatnonzero((stacks[:-1] != own) & (stacks[1:] == own) & (np.diff(rows) <= AT_ONCE))
    known, given = paths(run), rows[behind]
    if len(given) < LEAST_CALLS or any(module_of(known[one]) != module_of(known[own]) for one in run.stack[given]):
        return False
    return bool((run.end[given] > run.begin[rows[behind + 1]]).all())


def written_by_torch(run: Run) -> BoolArray:
    """What torch's own attention writes out where a bias is added, but for its results: float32, whatever it is given.

    Of the backward, what is as large as scores.
    """
    return run.study.once("attention of the ledger", lambda: _written_by_torch(run))


def _written_by_torch(run: Run) -> BoolArray:
    found = np.zeros(len(run.size), np.bool_)
    inside = _inside(run)
    rows = np.flatnonzero(inside)
    large = inside & (run.size >= LEAST_SCORES)
    scores = [size for size in np.unique(run.size[large]).tolist() if _has_bias(run, inside & (run.size == size))]
    together = (np.diff(rows) == 1) & (np.diff(run.stack[rows]) == 0)
    for call in np.split(rows, np.flatnonzero(~together) + 1):
        if np.isin(run.size[call], scores).any():
            found[call[:-1]] = True
    outside = np.unique(run.size[run.during(FORWARD) & ~inside & (run.stack >= 0)])
    return np.asarray(found | (run.during(BACKWARD) & np.isin(run.size, np.setdiff1d(scores, outside))))


def _inside(run: Run) -> BoolArray:
    """bool[requests]: what a forward makes within torch's own attention."""
    fused = np.array([_is_fused(run, stack) for stack in range(len(run.study.snapshot.stacks))] + [False])
    return np.asarray(fused[run.stack] & run.during(FORWARD))


def _is_fused(run: Run, stack: int) -> bool:
    return any(_FUSED.search(frame.name) for frame in run.study.snapshot.stacks[stack][:2])
