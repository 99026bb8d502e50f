"""Activations in host memory between forward and backward."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.ledger.draft import NEVER, SPACING
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.held import held_until
from oomscope.analysis.ledger.run import Run

SLUG = "offload_activations"
LEAST = 4096
"""Bytes; what is smaller is not worth a copy."""
AHEAD = 3
"""Recorded steps by which a copy is back before it is used."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """What is saved goes when Python is done with it, and is back shortly before the backward gives it up."""
    if not run.trains:
        return None
    rows = np.flatnonzero(run.saved & (run.size >= LEAST))
    if not len(rows):
        return None
    ends = np.minimum(held_until(run)[rows], run.end[rows])
    used = rows[run.end[rows] < NEVER]
    ends_used = ends[run.end[rows] < NEVER]
    back = np.maximum(run.end[used] - AHEAD * SPACING, ends_used + 1)
    draft = run.draft.lasting(rows, end=ends)
    likely = draft.added(run.size[used], back, run.end[used], used)
    earlier = np.maximum(run.end[used] - 4 * AHEAD * SPACING, ends_used + 1)
    return Edited(likely, (draft.added(run.size[used], earlier, run.end[used], used),), doubt=0.1)
