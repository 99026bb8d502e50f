"""What `cross_entropy` makes of logits in 16 bits, under autocast.

It says itself of what type the logarithms of its softmax are, that of its logits, and autocast leaves that. The loss of
those is in full precision, on a copy that lives until the backward has passed it.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import AT_ONCE, Draft
from oomscope.analysis.ledger.dtypes import usual_casts
from oomscope.analysis.ledger.dtypes.tied_logits import tied_logits
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.losses import LEAST, SHIFTED
from oomscope.analysis.ledger.run import Run
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray

NAME = "cross_entropy"
ALONE = "log_softmax"


@frozen
class OfLogits:
    """The requests of one call.

    Attributes:
        made: the logarithms of the softmax.
        until: the moment at which a copy in full precision goes.
        gradient: the gradient of the logarithms; -1 where none comes, as in an evaluation that keeps its graph.
        back: the gradient of the logits; likewise.
    """

    made: int
    until: int
    gradient: int = -1
    back: int = -1


def of_logits(run: Run) -> tuple[OfLogits, ...]:
    """The calls that are given what a product has just made, and are kept for a backward."""
    return run.study.once("cross entropy of the ledger", lambda: tuple(_of_logits(run)))


def _of_logits(run: Run) -> list[OfLogits]:
    found, stacks = [], run.study.snapshot.stacks
    forward, linear = run.during(FORWARD) & (run.stack >= 0), run.marked(Mark.LINEAR) | tied_logits(run)
    called = [any(frame.name == NAME for frame in stacks[one][:2]) for one in range(len(stacks))]
    named = np.array([*called, False])[run.stack] & forward
    if usual_casts.logits(run, in_scores=usual_casts.softmaxes(run)):
        return []
    large, unused = forward & (run.size >= LEAST), never_backward(run)
    for row in np.flatnonzero(named & run.saved & (run.size >= LEAST)).tolist():
        before = np.flatnonzero(large[:row] & ~named[:row] & (run.step[:row] == run.step[row]))[-2:]
        if not _is_given_a_product(linear[before], run.size[before] / run.size[row]):
            continue
        alike = run.during(BACKWARD) & (run.size == run.size[row]) & (run.begin < run.end[row])
        back = np.flatnonzero(alike & (run.begin > run.begin[row]))
        if unused[row]:
            found.append(OfLogits(row, int(run.end[row])))
        elif len(back) > 1:
            found.append(OfLogits(row, int(run.begin[back[-1]]) - 1, int(back[-2]), int(back[-1])))
    return found


def _is_given_a_product(linear: BoolArray, size: FloatArray) -> bool:
    """Whether a loss is given what a product has made: itself, or a copy without the last token of each sequence.

    Args:
        linear: whether each of the last two requests is a product's.
        size: of each, in parts of what the loss makes.
    """
    itself = bool((linear & (size == 1))[-1:].any())
    shifted = len(size) > 1 and linear[0] and size[1] == 1 < size[0] <= SHIFTED
    return itself or bool(shifted)


def in_half(run: Run, factor: FloatArray) -> FloatArray:
    """`factor` of each request, with those of such calls: all but what the loss itself goes backward with."""
    found: FloatArray = factor.copy()
    for one in of_logits(run):
        found[one.made] = 0.5
        if one.back >= 0:
            found[one.back], found[one.gradient] = 0.5, 1.0
    return found


def with_copies(run: Run, draft: Draft) -> Draft:
    """`draft` with the copies of which a loss is made."""
    calls = of_logits(run)
    rows = np.array([one.made for one in calls], np.int64)
    ends = np.array([one.until for one in calls], np.int64)
    alone = _logarithms_alone(run)
    copied = draft.added(run.size[rows], run.begin[rows], ends, rows)
    return copied.added(run.size[alone], run.begin[alone] - 1, run.begin[alone] + AT_ONCE, alone)


def _logarithms_alone(run: Run) -> IntArray:
    """int64: logarithms of a softmax that a program makes itself of what a product has just made.

    They are in full precision, and made of a copy of that, which goes when they are there.
    """
    stacks = run.study.snapshot.stacks
    called = [bool(len(stacks[one])) and stacks[one][0].name == ALONE for one in range(len(stacks))]
    named = np.array([*called, False])[run.stack] & run.during(FORWARD) & (run.stack >= 0)
    rows = np.flatnonzero(named & (run.size >= LEAST))
    before = np.maximum(rows - 1, 0)
    found: IntArray = rows[run.marked(Mark.LINEAR)[before] & (run.size[before] == run.size[rows])]
    return found
