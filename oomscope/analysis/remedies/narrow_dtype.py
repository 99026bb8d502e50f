"""Keep in float32 what is float64 in a program whose model is float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.attribution.held_blocks import live_rows
from oomscope.analysis.records import Location
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.model import IntArray
from oomscope.model.ordering import ascending

SLUG = "narrow_dtype"

WIDE = ("float64", "complex128")
WORTH_NARROWING = 0.1
"""Of the allocated bytes; what it has to save."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where a recording knows tensors of float64 beside parameters of float32: numpy's default, seldom meant."""
    study, entry = circumstances.study, circumstances.request.entry
    told = study.snapshot.recorded.tensors_on(study.index)
    if not any(one.category == "parameter" and one.dtype == "float32" for one in told):
        return
    rows = live_rows(study, entry, [one.address for one in told if one.dtype in WIDE and one.address is not None])
    rows = ascending(rows[rows >= 0])
    saves = int(study.history.size[rows].sum()) // 2
    if saves < WORTH_NARROWING * circumstances.request.totals.allocated:
        return
    holder, place = _keeper(circumstances, rows), _made_at(study, rows)
    if holder is None and place is None:
        return
    enough = enough_by_sum(circumstances, saves)
    yield Advice(SLUG, {"holder": holder, "place": place, "bytes": 2 * saves}, saves, enough, at=place)


def _keeper(circumstances: Circumstances, rows: IntArray) -> str | None:
    """The object that keeps most bytes of `rows`."""
    study, entry = circumstances.study, circumstances.request.entry
    whole = int(study.history.size[rows].sum())
    for one in circumstances.suspects:
        kept = np.intersect1d(rows, held_rows(study, entry, one.holder))
        if 2 * int(study.history.size[kept].sum()) > whole:
            return one.holder
    return None


def _made_at(study: DeviceStudy, rows: IntArray) -> Location | None:
    """The reader's own line that has made most bytes of `rows`."""
    callers = study.sites.callers(study.history.lifetimes.stack[rows])
    known = callers >= 0
    if not known.any():
        return None
    sums = np.bincount(callers[known], weights=study.history.size[rows[known]])
    return study.sites.location(int(sums.argmax()))
