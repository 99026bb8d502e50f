"""Models that take turns on the card, as a pipeline with offload moves them: told from the trace alone."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import PARAMETER
from oomscope.analysis.study import DeviceStudy

LEAST_FREED = 0.1
"""Of what is still there of a line: fewer bytes are of layers that were replaced, not of another model."""


def may_take_turns(study: DeviceStudy, entry: int) -> int:
    """Bytes of parameters that are there at `entry`, made by lines whose other parameters have been freed since.

    The line that moves one model to the card has moved others away again, so that this one may be due as well.
    """
    lifetimes, size = study.history.lifetimes, study.history.size
    parameters = study.categories == PARAMETER
    alive = parameters & lifetimes.allocated_at(entry)
    freed = parameters & ~alive & (lifetimes.born <= entry)
    # Not for what was there before: its stack is that of no line.
    line = np.append(study.sites.caller_of, -1)[lifetimes.stack]
    lines = int(line.max(initial=-1)) + 2
    there = np.bincount(line[alive] + 1, size[alive], lines)
    gone = np.bincount(line[freed] + 1, size[freed], lines)
    turns = (gone > 0) & (gone >= LEAST_FREED * there)
    return int(there[1:][turns[1:]].sum())
