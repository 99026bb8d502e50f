"""Fewer calls at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.passes.records import CallsInProgress
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "limit_calls_in_progress"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where many calls of one function were underway at the same time: half of them."""
    for one in circumstances.in_progress[:1]:
        most = max(one.calls // 2, 1)
        held = _held(circumstances, one)
        saves = held * (one.calls - most) // one.calls
        values = {"calls": one.calls, "most": most, "function": one.function, "bytes": held}
        yield Advice(SLUG, values, saves or None, enough_by_sum(circumstances, saves) if saves else None)


def _held(circumstances: Circumstances, one: CallsInProgress) -> int:
    """Bytes of the live blocks that were made within the function."""
    study = circumstances.study
    table = study.snapshot.stacks
    within = [
        number
        for number, frame in enumerate(table.frames)
        if (frame.filename, frame.name.rpartition(".")[2]) == (one.file, one.function)
    ]
    members = np.flatnonzero(np.isin(table.members, within))
    stacks = np.unique(np.searchsorted(table.offsets, members, side="right") - 1)
    rows = circumstances.live & np.isin(study.history.lifetimes.stack, stacks)
    return int(study.history.size[rows].sum())
