"""Softmaxes that go into a product of matrices, as in attention: in full precision, and once more for the product."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger.attention.matmuls import between_products
from oomscope.analysis.ledger.attention.named_scores import named_scores
from oomscope.analysis.ledger.attention.scores import of_triples, written_out
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.graphs.never_backward import never_backward, of_a_graph
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.paths import Path
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.requests.facts import Facts
from oomscope.analysis.plan.requests.scores_in_between import in_between
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray

BESIDE = 3
"""Requests from a softmax to what a dropout makes of it, at most."""
_OF_TORCH = "torch/nn/functional.py"


def shares(run: Run, known: dict[int, Path]) -> FloatArray:
    """Of scores that a backward needs, how much of each is there under autocast; 0 for what are none.

    A softmax is computed in full precision, and the product that follows needs a copy of it in half. Where a dropout
    follows, or a mask, the copy is of what that makes, and takes its place.
    """
    found = np.zeros(len(run.size))
    scores = written_out(run) | of_triples(run) | into_products(run, known) | between_products(run)
    scores |= _of_a_method(run, known) | _in_between(run)
    rows = np.flatnonzero(scores & run.saved & (run.end < NEVER) & _longest(run, scores))
    dropped = [_is_dropout(known[one]) for one in run.stack[rows].tolist()]
    masked = [False, *_same_line(run, rows)]
    for place, row in enumerate(rows.tolist()):
        beside = place + 1 < len(rows) and int(rows[place + 1]) - row <= BESIDE
        following = beside and (dropped[place + 1] or masked[place + 1])
        if masked[place] and not dropped[place]:
            found[row] = 0.5
        elif not dropped[place]:
            found[row] = 1.0 if following else 1.5
        else:
            found[row] = 0.5 if run.size[row] >= int(run.size[rows[max(place - 2, 0) : place + 1]].max()) else 1.0
    return found


def _same_line(run: Run, rows: IntArray) -> list[bool]:
    """For all but the first of `rows`, whether the same line has made as much just before: a softmax that is masked."""
    alike = (np.diff(run.stack[rows]) == 0) & (np.diff(run.size[rows]) == 0) & (np.diff(rows) <= BESIDE)
    found: list[bool] = alike.tolist()
    return found


def _of_a_method(run: Run, known: dict[int, Path]) -> BoolArray:
    """bool[requests]: what is kept of scores in a function called attention by a softmax that is a method."""
    named = named_scores(run)
    own = [stack for stack, path in known.items() if not path[-1][-1][0].startswith("torch/")]
    found = np.zeros(len(run.size), np.bool_) if named is None else named[0] & run.saved & np.isin(run.stack, own)
    return np.asarray(found)


def _in_between(run: Run) -> BoolArray:
    """bool[requests]: a softmax without a name, the last of what is as large between two products, and a dropout of it.

    A backward needs it alone: neither the product nor what scales or masks that.
    """
    found = np.zeros(len(run.size), np.bool_)
    for one in in_between(Facts(run.recording), run.recording.at_once):
        if run.saved[one.made[-1]] and not run.saved[one.made[:-1]].any():
            found[one.made[-1]] = found[one.dropped] = True
    return found


def into_products(run: Run, known: dict[int, Path]) -> BoolArray:
    """bool[requests]: what a function called softmax makes, and a dropout of it, where something smaller comes next.

    A function of single numbers makes something at least as large; what is smaller is a product with it.
    """
    found = np.zeros(len(run.size), np.bool_)
    named = {stack for stack, path in known.items() if is_softmax(path[-1][-1])}
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & ~run.recording.at_once)
    stacks = run.stack[rows].tolist()
    dropped = [_is_dropout(known[stack]) for stack in stacks]
    kept = of_a_graph(run)[rows] & ~losses(run)[rows]
    for place in np.flatnonzero(np.isin(run.stack[rows], [*named]) & kept).tolist():
        end = place + 1
        while end < len(rows) and dropped[end]:
            end += 1
        if end < len(rows) and stacks[end] != stacks[place] and run.size[rows[end]] < run.size[rows[place]]:
            found[rows[place:end]] = True
    return found


def is_softmax(frame: tuple[str, int, str]) -> bool:
    """Whether a function is torch's own softmax, or one of the program's that is called so, as with a mask."""
    filename, _, name = frame
    if filename.startswith("torch/"):
        return filename == _OF_TORCH and name == "softmax"
    return "softmax" in name


def _is_dropout(path: Path) -> bool:
    return any(name == "dropout" for _, _, name in path[-1])


def _longest(run: Run, rows: BoolArray) -> BoolArray:
    """Which of `rows` a backward gives up, not the forward; or the graph of an evaluation."""
    found = rows & never_backward(run)
    for step in range(run.steps):
        backward = run.first_of(step, BACKWARD)
        found |= rows & (run.step == step) & (run.end > backward)
    return found
