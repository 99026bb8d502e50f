"""Which blocks are kept from finished passes."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.passes.finished import finished_before
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.places import live_at_places
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.model import BoolArray


def kept_rows(circumstances: Circumstances) -> BoolArray:
    """bool[lifetimes]: blocks of finished passes that the holders keep, or, where none is known, that grow by site."""
    study, entry = circumstances.study, circumstances.request.entry
    lifetimes = study.history.lifetimes
    chosen = np.zeros(len(lifetimes), np.bool_)
    if circumstances.piled.holder is not None:
        for one in (circumstances.piled.holder, *circumstances.piled.beside):
            chosen[held_rows(study, entry, one.holder)] = True
    else:
        places = {(one.site, one.caller) for one in circumstances.growth}
        chosen = live_at_places(study, circumstances.live, places)
    rows = np.flatnonzero(chosen & circumstances.live)
    kept = np.zeros(len(lifetimes), np.bool_)
    kept[rows[finished_before(study, rows, entry)]] = True
    return kept
