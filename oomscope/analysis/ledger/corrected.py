"""Logits that a function of the program makes, corrects or masks on the way to a loss, as of all items of a batch.

``logits - torch.log(ids / items)`` is in float32 in a model of 16 bits: whole numbers are divided in float32, to which
torch promotes what is combined with them, unless that is one number. A mask has a truth value for each.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import INPUT
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.losses import LEAST, losses
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

LEAST_STEPS = 2
"""Of a line that makes something of whole numbers: divided, a logarithm."""
LEAST_BYTES = 1 << 10
FLOAT = 4
"""Bytes of a float32."""
WHOLE, MASK = 2, 4
"""Times as many bytes has a whole number as a float32, and that as a truth value."""


def corrected(run: Run) -> BoolArray:
    """bool[requests]: logits behind their product, and what goes backward through them, where that is in float32."""
    return run.study.once("corrected logits of the ledger", lambda: _corrected(run))


def masks_of_logits(run: Run) -> BoolArray:
    """bool[requests]: what functions keep for a backward that has a truth value for each of the logits."""
    found = np.zeros(len(run.size), np.bool_)
    for rows in forwards(run):
        own, logits = _behind(run, rows)
        found[own[run.saved[own] & (MASK * run.size[own] == logits)]] = True
    return found


def of_pairs_of_samples(run: Run) -> BoolArray:
    """bool[requests]: logits of each sample of a batch against each other one, masks of them, and what goes backward.

    They are as large as the square of what a number of an input for each sample tells; no layer makes them.
    """
    inputs = np.unique(run.size[run.of(INPUT) & (run.step >= 0)])
    samples = np.concatenate([inputs[inputs % width == 0] // width for width in (FLOAT, WHOLE * FLOAT)])
    found, sizes = np.zeros(len(run.size), np.bool_), set[int]()
    for rows in forwards(run):
        own, logits = _behind(run, rows)
        if logits in (FLOAT * samples * samples).tolist():
            found[own[np.isin(run.size[own], (logits, logits // MASK))]] = True
            sizes.add(logits)
    others = run.size[run.during(FORWARD) & (run.stack >= 0) & ~found]
    back = run.during(BACKWARD) & np.isin(run.size, np.setdiff1d([*sizes], others))
    return np.asarray(found | (back & ~run.like_parameter))


def _corrected(run: Run) -> BoolArray:
    found, sizes = np.zeros(len(run.size), np.bool_), set[int]()
    for rows in forwards(run):
        own, logits = _behind(run, rows)
        for made in _of_whole_numbers(run, own):
            later = rows[(rows > made) & (run.size[rows] == logits)]
            if logits % int(run.size[made]) == 0 and len(later) and run.begin[later[0]] < run.end[made]:
                found[later[1:]] = True
                sizes.add(logits)
    # The last of these gradients is in 16 bits again, that of the product's result; it is not told from the others.
    return np.asarray(found | (run.during(BACKWARD) & np.isin(run.size, [*sizes]) & ~run.like_parameter))


def _behind(run: Run, rows: IntArray) -> tuple[IntArray, int]:
    """What functions make behind the last module and layer of a forward, and the bytes of the largest loss there."""
    known, named = paths(run), losses(run)[rows]
    inside = np.array([len(known[one]) > 1 for one in run.stack[rows].tolist()], np.bool_)
    model = np.flatnonzero((inside | run.marked(Mark.LINEAR)[rows]) & ~named)
    behind = rows[model[-1] + 1 :] if len(model) else rows[:0]
    largest = int(run.size[behind[losses(run)[behind]]].max(initial=0))
    return behind, largest if largest >= LEAST else -1


def _of_whole_numbers(run: Run, own: IntArray) -> list[int]:
    """The last thing that each line makes of an input, step by step, if no backward needs any of it.

    The logarithm of what has a gradient is needed. Each is half as large as the input, so that those are whole numbers.
    """
    inputs = set(run.size[run.of(INPUT) & (run.step >= 0)].tolist())
    alike = (np.diff(run.stack[own]) == 0) & (np.diff(run.size[own]) == 0)
    found = []
    for line in np.split(own, np.flatnonzero(~alike) + 1):
        fits = len(line) >= LEAST_STEPS and run.size[line[0]] >= LEAST_BYTES
        if fits and WHOLE * int(run.size[line[0]]) in inputs and not run.saved[line].any():
            found.append(int(line[-1]))
    return found
