"""What one line has made again, with work in between: models of clients or of trials, a cache for each generation."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import ACTIVATION, BUFFER, PARAMETER, TEMPORARY, UNKNOWN
from oomscope.analysis.study import DeviceStudy
from oomscope.model.ordering import is_any


def made_anew(study: DeviceStudy, entry: int) -> int:
    """Bytes of models and caches that are there at `entry` although their line has made others of the same sizes since.

    The layers of one model are made one right after the other; between two models something is computed.
    """
    lifetimes, size = study.history.lifetimes, study.history.size
    there = lifetimes.allocated_at(entry)
    lasting = is_any(study.categories, (PARAMETER, BUFFER, UNKNOWN))
    rows = np.flatnonzero(lasting & there & (lifetimes.stack >= 0))
    if not len(rows):
        return 0
    computed = np.sort(lifetimes.born[(study.categories == ACTIVATION) | (study.categories == TEMPORARY)])
    when = np.searchsorted(computed, lifetimes.born[rows])
    line = study.sites.site_of[lifetimes.stack[rows]]
    order = np.lexsort((when, size[rows], line))
    rows, when = rows[order], when[order]
    changes = (np.diff(line[order]) != 0) | (np.diff(size[rows]) != 0)
    kind = np.append(0, np.cumsum(changes))  # one number for all that a line has made in one size
    newest = when[np.append(np.flatnonzero(changes), len(rows) - 1)]
    return int(size[rows[when < newest[kind]]].sum())
