"""no_grad: the forward alone; what it makes goes when the next module is done with it."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import GRADIENT, OPTIMIZER_STATE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OPTIMIZER
from oomscope.analysis.ledger.casts import autocast_copies
from oomscope.analysis.ledger.draft import NEVER, SPACING
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.graphs.held import held_until
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.graphs.overlooked import some_are_left
from oomscope.analysis.ledger.graphs.untrained import untrained
from oomscope.analysis.ledger.passes import backward_of, forwards
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.model import BoolArray, IntArray

SLUG = "no_grad"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """No backward, no gradients, no optimizer; activations live as long as Python holds them.

    Where a network goes backward that nothing trains, or a graph is kept for no backward, that is all which runs
    without one. Where some weights have gradients for nothing, and nothing tells what could do without, there is no
    answer: an evaluation saves far more.
    """
    part, unused = untrained(run), never_backward(run)
    if part is None and unused.any():
        return _without_unused(run, unused)
    if not run.saved.any() or (part is None and some_are_left(run, forwards(run))):
        return None
    gone = run.during(BACKWARD, OPTIMIZER) | run.of(GRADIENT, OPTIMIZER_STATE) if part is None else part.backward
    draft = run.draft.without(gone)
    rows = np.flatnonzero(unused | (run.saved if part is None else run.saved & part.forward))
    ends = _let_go(run, rows)
    return Edited(
        draft.lasting(rows, end=ends),
        (draft.lasting(rows, end=_with_features(run, rows, ends)),),
        doubt=0.02,
        forward_alone=None if part is None else part.forward,
    )


def _without_unused(run: Run, unused: BoolArray) -> Edited:
    """Graphs that no backward uses are not kept; all else stays."""
    rows = np.flatnonzero(unused)
    return Edited(run.draft.lasting(rows, end=held_until(run)[rows]), doubt=0.05, forward_alone=unused)


def _let_go(run: Run, rows: IntArray) -> IntArray:
    """When Python lets go of what a forward made in `rows`."""
    # Of what one call makes, the first is its result; indices, masks and statistics are for the backward alone.
    beside = np.append(np.array([False]), (np.diff(rows) == 1) & (run.stack[rows[1:]] == run.stack[rows[:-1]]))
    beside &= ~np.isin(rows - 1, autocast_copies(run))
    ends = np.where(beside, run.begin[rows] + SPACING, held_until(run)[rows])
    found: IntArray = np.where(_outlives(run, rows), run.end[rows], np.minimum(ends, run.end[rows]))
    return found


def _with_features(run: Run, rows: IntArray, ends: IntArray) -> IntArray:
    """The ends of `rows` where what each block returns is kept until the forward ends, as features for a decoder are.

    A list of the program holds them, which no trace shows.
    """
    returned = np.array([block.output for block in blocks(run)], np.int64)
    forward = run.last_of_own_step(FORWARD, otherwise=NEVER)[rows]
    return np.where(np.isin(rows, returned), np.maximum(ends, np.minimum(forward, run.end[rows])), ends)


def _outlives(run: Run, rows: IntArray) -> BoolArray:
    """bool[rows]: what a variable of the program holds after the backward behind it, as the logits of one.

    So does what a generator makes for its critic, until the next one.
    """
    passes = forwards(run)
    backs = [backward_of(run, passes, number) for number in range(len(passes))]
    lasts = np.array([int(run.begin[back[-1]]) if len(back) else -1 for back in backs], np.int64)
    of_pass = np.searchsorted(np.array([own[0] for own in passes], np.int64), rows, side="right") - 1
    last = np.where(of_pass >= 0, lasts[of_pass], -1)
    found: BoolArray = (last >= 0) & (run.end[rows] > last + 2 * SPACING)
    return found
