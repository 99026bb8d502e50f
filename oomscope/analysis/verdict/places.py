"""Which blocks the lines of a program made."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import BoolArray


def live_at_places(
    study: DeviceStudy, live: BoolArray, places: set[tuple[Location | None, Location | None]]
) -> BoolArray:
    """bool[lifetimes]: those of `live`, bool[lifetimes], whose (site, caller) is one of `places`."""
    rows = np.flatnonzero(live)
    stack = study.history.lifetimes.stack[rows]
    pairs, where = np.unique(
        np.stack([study.sites.sites(stack), study.sites.callers(stack)]), axis=1, return_inverse=True
    )
    wanted = [(study.sites.location(one), study.sites.location(other)) in places for one, other in pairs.T.tolist()]
    chosen = np.zeros(len(live), np.bool_)
    chosen[rows[np.array(wanted, np.bool_)[np.ravel(where)]]] = True
    return chosen
