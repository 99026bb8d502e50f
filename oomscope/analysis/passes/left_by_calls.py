"""What calls that ran a model have left when they returned: told from the trace alone, which cannot tell who reads it.

Scores of an evaluation, what a sampler drew, a baseline with its graph. Where another forward runs, at its first pass,
more often than not they are left over; data that a function has loaded is needed, but runs no model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.passes.left_from_before import ended_function, may_be_left
from oomscope.analysis.passes.script_stacks import MODULE
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy

LEAST_SHARE = 0.3
"""Of the allocated bytes: less than that is what any earlier work leaves for the next."""


class LeftByCalls(NamedTuple):
    """`bytes` that calls have left which ran a model; most was allocated at `place`."""

    bytes: int
    place: Location | None


def find_left_by_calls(study: DeviceStudy, entry: int) -> LeftByCalls | None:
    """What is left of such calls at `entry`; None where a loop is underway, or it is little."""
    if study.loops.running(entry):
        return None
    script, lifetimes, size = study.loops.script, study.history.lifetimes, study.history.size
    ended = ended_function(study, entry)
    runs_model = {
        script.function[place] for path in script.paths if MODULE in path for place in path[: path.index(MODULE)]
    }
    of_model = np.isin(ended, list(runs_model)) & (ended >= 0)
    rows = np.flatnonzero(may_be_left(study, entry) & of_model[lifetimes.stack])
    left = int(size[rows].sum())
    if left < LEAST_SHARE * max(study.history.curves.at(entry)[0], 1):
        return None
    largest = int(lifetimes.stack[rows[np.argmax(size[rows])]])
    return LeftByCalls(left, study.sites.location(int(study.sites.caller_of[largest])))
