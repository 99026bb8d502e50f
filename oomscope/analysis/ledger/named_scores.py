"""Scores of attention that the name of a function or of its module tells."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.drivers import attention_scores
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.paths import Path, module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray


def named_scores(run: Run) -> tuple[BoolArray, BoolArray] | None:
    """The scores at the peak that names tell, and their gradients; None where there are none. Found once."""
    return run.study.once("named scores of the ledger", lambda: _named(run))


def _named(run: Run) -> tuple[BoolArray, BoolArray] | None:
    """The scores at the peak that names tell, and their gradients; None where there are none."""
    curve = run.study.history.curves.allocated
    live = LiveBlocks(run.study, int(np.argmax(curve)) - 1)
    scores = attention_scores.find(live) & np.isin(live.stack, _beside_a_softmax(run))
    if not scores.any():
        return None
    sizes = np.unique(live.bytes[scores])
    # What the same function makes before is of them too, as what a product was to be written into.
    made = run.during(FORWARD) & (run.stack >= 0)
    of_them = np.isin(run.stack, np.unique(live.stack[scores])) | run.marked(Mark.ATTENTION)
    others = np.unique(run.size[made & ~of_them])
    inside = made & of_them & np.isin(run.size, sizes)
    back = run.during(BACKWARD) & np.isin(run.size, np.setdiff1d(sizes, others))
    return inside, back


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
