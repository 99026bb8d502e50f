"""Scores of attention that the name of a function or of its module tells."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.drivers import attention_scores
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import NEVER, SPACING
from oomscope.analysis.ledger.paths import Path, module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.whole_numbers import whole_numbers
from oomscope.model import BoolArray, IntArray


def named_scores(run: Run) -> tuple[BoolArray, BoolArray] | None:
    """The scores that names tell, and their gradients; None where there are none at the peak. Found once."""
    return run.study.once("named scores of the ledger", lambda: _named(run))


def _named(run: Run) -> tuple[BoolArray, BoolArray] | None:
    """Of sizes as at the peak, and as where a backward or an evaluation below it has most: batches may be of others."""
    curve = run.study.history.curves.allocated
    beside = _beside_a_softmax(run)
    found = [_at(run, entry, beside) for entry in (int(np.argmax(curve)) - 1, *_other_peaks(run, curve))]
    if not len(found[0][0]):
        return None
    sizes, stacks = (np.unique(np.concatenate(every)) for every in zip(*found, strict=True))
    # What the same function makes before is of them too, as what a product was to be written into.
    made = run.during(FORWARD) & (run.stack >= 0)
    of_them = np.isin(run.stack, stacks) | run.marked(Mark.ATTENTION)
    others = np.unique(run.size[made & ~of_them])
    inside = made & of_them & np.isin(run.size, sizes)
    back = run.during(BACKWARD) & np.isin(run.size, np.setdiff1d(sizes, others))
    return inside | _masks(run, inside), back


def _masks(run: Run, scores: BoolArray) -> BoolArray:
    """bool[requests]: masks of dropouts, made right before what is left of `scores`."""
    found = np.zeros(len(run.size), np.bool_)
    found[:-1] = whole_numbers(run)[:-1] & scores[1:]
    return found


def _at(run: Run, entry: int, beside: list[int]) -> tuple[IntArray, IntArray]:
    """int64, twice: bytes of the scores at an entry of the history, and the stacks that made them."""
    live = LiveBlocks(run.study, entry)
    scores = attention_scores.find(live) & np.isin(live.stack, beside)
    return live.bytes[scores].astype(np.int64), live.stack[scores].astype(np.int64)


def _other_peaks(run: Run, curve: IntArray) -> list[int]:
    """The entries at which most is allocated in a backward, and in what is made below the optimizer."""
    entries = run.draft.program.entry[np.minimum(run.begin // SPACING, len(run.draft.program.entry) - 1)]
    parts = (run.during(BACKWARD), run.below_optimizer & run.during(FORWARD))
    rows = [np.flatnonzero(part & (run.begin < NEVER)) for part in parts]
    return [int(entries[one[np.argmax(curve[entries[one]])]]) for one in rows if len(one)]


def _beside_a_softmax(run: Run) -> list[int]:
    """Stacks in modules that call a softmax: a dropout of an adapter within attention is in another one."""
    known = paths(run)
    owner = {stack: module_of(_own(path)) for stack, path in known.items()}
    stacks = run.study.snapshot.stacks
    owners = {owner[one] for one in known if any("softmax" in frame.name for frame in stacks[one])}
    return [one for one in known if owner[one] in owners or not owners]


def _own(path: Path) -> Path:
    """A path without torch's own layers at its end."""
    while len(path) > 1 and path[-1][0][0].startswith("torch/"):
        path = path[:-1]
    return path
