"""Growth where no loop is known: it takes more to show it."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.stack_roles import Role
from oomscope.analysis.passes.candidates import Candidates
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.study import DeviceStudy
from oomscope.model import IntArray
from oomscope.model.ordering import ascending

LEAST_BLOCKS = 16
"""Without passes there is less to go on than a line through three of them."""
LEAST_DURATION = 0.5
"""Of the trace: how long a site must have gone on. What came and stayed at the start was set up."""
MOST_PAUSE = 3.0
"""Of the longest time between two blocks: how long ago the last may be. What has stopped grows no longer."""
LEAST_INTERLEAVED = 0.7
"""Of the blocks: between how many others must have come and gone. A list that is filled in one go lets nothing go."""
LEAST_FIT = 0.95
"""R² of the line of gathered bytes over entries."""


def grown_over_time(study: DeviceStudy, candidates: Candidates) -> list[Growth]:
    """Sites outside any forward that gain blocks all the time, while other blocks come and go in between."""
    lifetimes, at = candidates.history.lifetimes, candidates.at
    role = study.roles.role[lifetimes.stack]
    known = study.loops.around(lifetimes.born) >= 0
    live = np.flatnonzero(candidates.eligible & lifetimes.allocated_at(at) & (role == Role.NEUTRAL) & ~known)
    passing = np.sort(lifetimes.born[(lifetimes.born >= 0) & (lifetimes.freed <= at)])
    if len(live) < LEAST_BLOCKS or not len(passing):
        return []
    found = [
        _of_site(candidates, live[candidates.key[live] == key], passing) for key in ascending(candidates.key[live])
    ]
    return [one for one in found if one is not None]


def _of_site(candidates: Candidates, rows: IntArray, passing: IntArray) -> Growth | None:
    history, at = candidates.history, candidates.at
    rows = rows[np.argsort(history.lifetimes.born[rows])]
    size = history.size[rows]
    if len(rows) < LEAST_BLOCKS or size.sum() < candidates.least:
        return None
    born = history.lifetimes.born[rows]
    if born[-1] - born[0] < LEAST_DURATION * at or at - born[-1] > MOST_PAUSE * np.diff(born).max():
        return None
    own = history.lifetimes.born[candidates.key == candidates.key[rows[0]]]
    between = np.diff(np.searchsorted(np.setdiff1d(passing, own, assume_unique=True), born))
    gathered = np.cumsum(size).astype(np.float64)
    fit = float(np.corrcoef(born, gathered)[0, 1]) ** 2
    if np.mean(between > 0) < LEAST_INTERLEAVED or fit < LEAST_FIT:
        return None
    spared = int(gathered[-1] - size[-1])
    per_block = float(gathered[-1]) / len(rows)
    return candidates.growth(rows, "time", per_pass=per_block, generations=len(rows), fit=fit, spared=spared)
