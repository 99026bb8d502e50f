"""A pass that asks for the same as one before it, and frees less of what it makes.

Gradients are recorded where they were not (parameters that were frozen, ``no_grad``, checkpointing), or something has
begun to keep what each line makes.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import ACTIVATION, INPUT, TEMPORARY
from oomscope.analysis.passes.last_pass import fitted
from oomscope.analysis.passes.records import KeepsMore
from oomscope.analysis.passes.same_places import SAME
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import IntArray
from oomscope.model.ordering import is_any

LEAST_RATIO = 2.0
"""Times as much as the pass before held at the same request."""
LEAST_SHARE = 0.3
"""Of the allocated bytes: what the pass must hold beyond that."""


def keeps_more(study: DeviceStudy, entry: int) -> KeepsMore | None:
    """How much more of what it made this pass holds at `entry` than the last one that came there did; None for little.

    Args:
        study: of the device.
        entry: of a request.
    """
    last = fitted(study, entry)
    stack = study.history.trace.stack
    if last is None or stack[entry] < 0:
        return None
    begin, end = int(last.run.starts[last.run.completed(entry)]), int(last.run.starts[last.number + 1])
    nth = int(np.count_nonzero(stack[begin:entry] == stack[entry]))
    there = last.begin + np.flatnonzero(stack[last.begin : end] == stack[entry])
    if nth >= len(there):
        return None
    asked = study.history.trace.size
    if asked[entry] > asked[there[nth]] * (1 + SAME):
        return None  # a larger pass holds more
    now, then = _held(study, begin, entry), _held(study, last.begin, int(there[nth]))
    size = study.history.size
    bytes_, before = int(size[now].sum()), int(size[then].sum())
    least = LEAST_SHARE * int(study.history.curves.allocated[entry])
    if bytes_ < LEAST_RATIO * before or bytes_ - before < least:
        return None
    return KeepsMore(bytes_, before, _place(study, now))


def _held(study: DeviceStudy, begin: int, entry: int) -> IntArray:
    """Numbers of the lifetimes: what has been made since `begin`, is alive at `entry` and is no model's."""
    lifetimes = study.history.lifetimes
    rows = np.flatnonzero(lifetimes.allocated_at(entry - 1) & (lifetimes.born >= begin))
    return rows[is_any(study.categories[rows], (ACTIVATION, INPUT, TEMPORARY))]


def _place(study: DeviceStudy, rows: IntArray) -> Location | None:
    """The line that made most of it."""
    sites = study.sites.site_of[study.history.lifetimes.stack[rows]]
    known = sites >= 0
    if not known.any():
        return None
    return study.sites.location(int(np.argmax(np.bincount(sites[known], study.history.size[rows[known]]))))
