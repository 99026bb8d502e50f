"""Backwards of which a later one goes backward again, as ``create_graph`` does: forces, penalties of gradients."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION, TEMPORARY
from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OTHER
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray

SMALL_SHARE = 1 / 16
"""Of what a backward makes: less that outlives it is no graph."""


def derived(run: Run) -> BoolArray:
    """bool[requests]: what a backward makes for a later one of its step. Found once."""
    return run.study.once("made by one backward for the next", lambda: _derived(run))


def begins_of_first(run: Run) -> IntArray:
    """int64[requests]: for what a forward makes, the moment at which the first backward behind it begins.

    `NEVER` where no later one goes backward through that one.
    """
    back = np.flatnonzero(run.during(BACKWARD))
    found = np.full(len(run.size), NEVER, np.int64)
    if not len(back) or not (made := derived(run)).any():
        return found
    first = _firsts(run, back)
    firsts, nth = back[first], np.cumsum(first) - 1
    number = np.searchsorted(firsts, np.arange(len(run.size)))
    graph, all_of_it = (np.bincount(nth, weights) for weights in (run.size[back] * made[back], run.size[back]))
    keeps = np.append(graph > SMALL_SHARE * all_of_it, False)
    begins = np.append(run.begin[firsts], NEVER)
    return np.where(keeps[number], begins[number], NEVER)


def _derived(run: Run) -> BoolArray:
    """Python has no name for it, and it is still there when the next backward begins."""
    found = np.zeros(len(run.size), np.bool_)
    back = np.flatnonzero(run.during(BACKWARD))
    if not len(back):
        return found
    first = _firsts(run, back)
    begins = np.append(run.begin[back[first]], NEVER)
    following = begins[np.cumsum(first)]
    found[back] = run.of(ACTIVATION, TEMPORARY)[back] & (run.end[back] > following) & (run.end[back] < NEVER)
    return found


def _firsts(run: Run, back: IntArray) -> BoolArray:
    """bool[back]: which requests begin a backward: Python has made something since the one before."""
    in_python = run.during(FORWARD, OTHER) & (run.stack >= 0)
    first: BoolArray = np.append(True, np.diff(np.cumsum(in_python)[back]) > 0)
    return first
