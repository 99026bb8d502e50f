"""What earlier work has left while a forward runs: told from the trace alone, which cannot tell who reads it.

Calls that ran a model and have returned leave the scores of an evaluation, what a sampler drew, a baseline with its
graph; so do statements before the one underway, and what ran before its loop. More often than not that is left over;
data that a function has loaded is needed, but runs no model, and is seldom most of what the card has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.passes.last_pass import rows_of_finished_passes
from oomscope.analysis.passes.left_from_before import (
    ended_function,
    made_by_call_underway,
    may_be_left,
    rows_from_before,
    rows_of_other_statements,
)
from oomscope.analysis.passes.script_stacks import MODULE
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import IntArray

LEAST_SHARE = 0.3
"""Of the allocated bytes: less than that is what any earlier work leaves for the next."""
NEARLY_ALL = 0.95
"""Of what finished passes have left: so much the last of them must have, for a few bytes stay from each."""


class LeftByCalls(NamedTuple):
    """`bytes` that earlier work has left; most was allocated at `place`.

    By ``calls`` that have returned, by ``statements`` before the one underway or before its loop, or by the ``pass``
    before. `holder`: the object that keeps it, where it is known.
    """

    bytes: int
    place: Location | None
    by: str = "calls"
    holder: str | None = None


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
    if int(size[rows].sum()) < LEAST_SHARE * max(study.history.curves.at(entry)[0], 1):
        return None
    return _told(study, rows, "calls")


def find_left_by_statements(study: DeviceStudy, entry: int, least: int) -> LeftByCalls | None:
    """What is older than the forward that runs at `entry` and its loop; None where it is less than `least` bytes.

    A function below the script's own statements that has run one model and is running another, or a loss, needs both.
    """
    of_call = made_by_call_underway(study, entry)[study.history.lifetimes.stack]
    older = (rows_from_before(study, entry), rows_of_other_statements(study, entry, in_forward=True))
    choices = (rows & ~of_call for rows in older)
    rows = max(map(np.flatnonzero, choices), key=lambda found: int(study.history.size[found].sum()))
    if not len(rows) or int(study.history.size[rows].sum()) < least:
        return None
    return _told(study, rows, "statements")


def find_left_by_last_pass(study: DeviceStudy, entry: int, least: int) -> LeftByCalls | None:
    """What the last pass has left, and none before it, while the next one runs; None if it is less than `least` bytes.

    A variable keeps it until the same statement assigns it anew: an output, a loss with its graph.
    """
    rows = rows_of_finished_passes(study, entry)
    newest = rows_of_finished_passes(study, entry, passes=1)
    bytes_ = int(study.history.size[newest].sum())
    if bytes_ < least or bytes_ < NEARLY_ALL * int(study.history.size[rows].sum()):
        return None
    return _told(study, newest, "pass")


def _told(study: DeviceStudy, rows: IntArray, by: str) -> LeftByCalls:
    size, stack = study.history.size[rows], study.history.lifetimes.stack[rows]
    largest = int(stack[np.argmax(size)])
    return LeftByCalls(int(size.sum()), study.sites.location(int(study.sites.caller_of[largest])), by)
