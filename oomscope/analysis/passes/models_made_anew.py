"""Models that one line has made again and again, with work in between, such as those of clients or of trials."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import ACTIVATION, PARAMETER, TEMPORARY
from oomscope.analysis.study import DeviceStudy


def made_anew(study: DeviceStudy, entry: int) -> int:
    """Bytes of parameters that are there at `entry` although their line has made others of the same sizes since.

    The layers of one model are made one right after the other; between two models something is computed.
    """
    lifetimes, size = study.history.lifetimes, study.history.size
    there = lifetimes.allocated_at(entry)
    rows = np.flatnonzero((study.categories == PARAMETER) & there & (lifetimes.stack >= 0))
    if not len(rows):
        return 0
    computed = np.sort(lifetimes.born[(study.categories == ACTIVATION) | (study.categories == TEMPORARY)])
    when = np.searchsorted(computed, lifetimes.born[rows])
    order = np.lexsort((when, size[rows], lifetimes.stack[rows]))
    rows, when = rows[order], when[order]
    changes = (np.diff(lifetimes.stack[rows]) != 0) | (np.diff(size[rows]) != 0)
    kind = np.append(0, np.cumsum(changes))  # one number for all that a line has made in one size
    newest = when[np.append(np.flatnonzero(changes), len(rows) - 1)]
    return int(size[rows[when < newest[kind]]].sum())
