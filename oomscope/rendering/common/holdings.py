"""Which live blocks a holder of the verdict keeps, also where its name stands for several objects."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.verdict.suspects import held_rows, live_rows
from oomscope.model import IntArray

_CYCLE = "reference cycle: "


def rows_held(device: DeviceFindings, holder: str) -> IntArray:
    """int64[n]: the lifetimes that `holder` keeps at the instant of attribution.

    The recording tells of ``problems[*]``, all items alike, and of a cycle by the way around it; the tensors name the
    item, and the way without a word before it.
    """
    study, entry = device.study, device.at_entry
    rows = held_rows(study, entry, holder)
    if len(rows):
        return rows
    way = re.escape(holder.removeprefix(_CYCLE)).replace(r"\[\*\]", r"\[[^\]]*\]")
    within = re.compile(rf"{way}(?!\w)")
    told = [one for one in study.snapshot.recorded.tensors_on(study.index) if one.address is not None]
    addresses = [one.address or 0 for one in told if within.match((one.holders[:1] or [one.name or ""])[0])]
    rows = live_rows(study, entry, addresses)
    return np.unique(rows[rows >= 0])
