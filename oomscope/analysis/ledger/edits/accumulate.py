"""Gradient accumulation: micro-batches of 1/n, whose gradients live on through the forwards of the next ones."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION, INPUT, TEMPORARY
from oomscope.analysis.labels.phases import BACKWARD, OPTIMIZER
from oomscope.analysis.ledger.corrected import of_pairs_of_samples
from oomscope.analysis.ledger.draft import AT_ONCE, NEVER, SPACING, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.graphs.several_steps import for_several_steps, now_and_then
from oomscope.analysis.ledger.run import SCALAR, Run
from oomscope.analysis.plan.growth.reductions import filled_by
from oomscope.model import BoolArray, IntArray

SLUG = "accumulate"
DEFAULT = 2


def edit(run: Run, value: int | None) -> Edited | None:
    """What grows with the batch is 1/n; gradients are there from the first micro-batch on, and new ones are added.

    What compares each sample of the batch with each other one is 1/n². A reduction that filled the card may fill it
    still.
    """
    if not run.trains or not run.grows_with_batch.any():
        return None
    # The optimizer steps once, with the rows of all micro-batches; an evaluation below it has a batch of its own.
    # What is there for several of its steps, as a rollout with its graph, was made before the loop over batches, and so
    # was what only some of them find made.
    once = run.during(OPTIMIZER) | run.below_optimizer | for_several_steps(run) | now_and_then(run)
    shrinks = run.grows_with_batch & ~_kept(run) & ~_sparse_gradients(run) & ~once
    share = 1 / (value or DEFAULT)
    full = filled_by(run.recording)
    reductions = (full > 0) & (share * full < run.size)
    recorded = run.draft.scaled(share * full[reductions] / run.size[reductions], reductions)
    pairs = of_pairs_of_samples(run) & shrinks
    squared = recorded.scaled(share, pairs)
    draft, in_proportion = squared.scaled(share, shrinks), recorded.scaled(share, shrinks)
    whole_inputs = squared.scaled(share, shrinks & ~run.of(INPUT))
    others = [draft] if not run.gradients.any() else []
    # As many classes as samples may be chance.
    others += [accumulated(run, in_proportion)] if pairs.any() else []
    return Edited(accumulated(run, draft), (*others, accumulated(run, whole_inputs)), doubt=0.08)


def _kept(run: Run) -> BoolArray:
    """What lines make that keep it for more than their next step: every micro-batch leaves its part of that.

    Two optimizers may take turns, so that a line's next step is not the next one.
    """
    mine = (run.step >= 0) & (run.stack >= 0) & (run.size > SCALAR) & run.of(ACTIVATION, TEMPORARY)
    after_next = _after_next(run, mine)
    kept = mine & (after_next < NEVER) & (run.end > after_next)
    pairs = np.stack([run.stack.astype(np.int64), run.size], axis=1)
    which = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    found: BoolArray = mine & np.isin(which, which[kept])
    return found


def _after_next(run: Run, rows: BoolArray) -> IntArray:
    """int64[requests]: when the last but one of the next two steps of the line of each of `rows` begins; NEVER else."""
    begins = np.array([run.step_begins(step) for step in range(run.steps)], np.int64)
    found = np.full(len(run.size), NEVER, np.int64)
    which = np.flatnonzero(rows)
    order = which[np.lexsort((run.step[which], run.stack[which]))]
    pairs, inverse = np.unique(np.stack([run.stack[order], run.step[order]], axis=1), axis=0, return_inverse=True)
    later = np.minimum(np.arange(len(pairs)) + 2, len(pairs) - 1)
    same = (pairs[later, 0] == pairs[:, 0]) & (later == np.arange(len(pairs)) + 2)
    found[order] = np.where(same, begins[pairs[later, 1]], NEVER)[inverse.reshape(-1)]
    return found


def _sparse_gradients(run: Run) -> BoolArray:
    """What a backward leaves to the optimizer that is as large as no parameter: rows, to which new ones are joined."""
    last = run.last_of_own_step(BACKWARD)
    left = run.during(BACKWARD) & (last >= 0) & (run.end > last)
    found: BoolArray = left & ~run.like_parameter & (run.size > SCALAR)
    return found


def accumulated(run: Run, draft: Draft) -> Draft:
    """`draft` in which a step's gradients are there from its beginning; what its backward makes is added.

    An evaluation or a rollout that runs before has none yet.
    """
    rows = np.flatnonzero(run.gradients & run.during(BACKWARD) & (run.step >= 0))
    if not len(rows):
        return draft
    made = draft.begin[rows]
    rollouts = np.append(0, np.sort(run.begin[now_and_then(run)]))
    before = rollouts[np.searchsorted(rollouts, made, side="right") - 1]
    begins = np.minimum(np.maximum(run.own_begins[run.step[rows]], before + SPACING), made)
    kept = draft.lasting(rows, begin=begins - 1)
    return kept.added(draft.size[rows], made, made + SPACING + AT_ONCE, rows)
