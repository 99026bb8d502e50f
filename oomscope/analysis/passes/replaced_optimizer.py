"""The states of an optimizer that another one, for the same parameters, has followed: told from the trace alone.

An optimizer makes the states of a parameter once, in the first step that trains it. Where the same line makes states
for parameters that all had theirs, and the training had gone on between, a second optimizer has taken over. Something
still refers to the first one: a scheduler, a list, an attribute.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.labels.categories import OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.history import BEFORE
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import among, ascending, numbered

LEAST_STEPS = 3
"""Backward passes between the states of the one and of the other. Optimizers that step in turn begin in one pass."""
TWO_EACH = 2
"""States of each parameter, as Adam keeps. One for each may be two for half of them, the rest being trained later."""
MOST_AGAIN = 0.9
"""Of the bytes of the new states: how many must be for parameters that had theirs."""


class ReplacedOptimizer(NamedTuple):
    """`bytes` of states of the former optimizer; `rows` are their lifetimes, `place` is where the new one steps."""

    bytes: int
    place: Location | None
    rows: IntArray


def find_replaced_optimizer(study: DeviceStudy, entry: int) -> ReplacedOptimizer | None:
    """What an optimizer keeps that another one has followed; None where there is none, or the trace cannot tell."""
    lifetimes, size = study.history.lifetimes, study.history.size
    alive = lifetimes.allocated_at(entry)
    states = np.flatnonzero(alive & (study.categories == OPTIMIZER_STATE) & (lifetimes.born > BEFORE))
    if not len(states):
        return None
    number = _backwards_before(study, lifetimes.born[states])
    new = states[number == number.max()]
    alike = _by_the_same_lines(study, states, new)
    old = states[alike & (number <= number.max() - LEAST_STEPS)]
    parameters = np.flatnonzero(alive & (study.categories == PARAMETER))
    again = among(size[new], _sizes_of_which_all_have(size[old], size[parameters]))
    if not len(old) or size[new[again]].sum() <= MOST_AGAIN * size[new].sum():
        return None
    if _are_made_by_every_step(number[alike]):
        return None
    stack = int(lifetimes.stack[new[np.argmax(size[new])]])
    place = study.sites.location(int(study.sites.caller_of[stack])) if stack >= 0 else None
    return ReplacedOptimizer(int(size[old].sum()), place, old)


def _are_made_by_every_step(number: IntArray) -> bool:
    """Whether states come step after step, as L-BFGS fills its history, and not as each optimizer begins.

    Args:
        number: int64[states], how many backward passes had begun before each.
    """
    begun = ascending(number)
    return bool(len(begun) >= LEAST_STEPS and (np.diff(begun) < LEAST_STEPS).all())


def _backwards_before(study: DeviceStudy, entries: IntArray) -> IntArray:
    """How many backward passes had begun before each of `entries`."""
    born = study.history.lifetimes.born
    telling = np.flatnonzero((born > BEFORE) & ((study.phases == FORWARD) | (study.phases == BACKWARD)))
    telling = telling[np.argsort(born[telling])]
    backward = study.phases[telling] == BACKWARD
    begins = backward & ~np.append(False, backward[:-1])
    return np.asarray(np.searchsorted(born[telling[begins]], entries))


def _by_the_same_lines(study: DeviceStudy, states: IntArray, new: IntArray) -> BoolArray:
    """bool[states]: which were made by a line that makes new ones; what an optimizer makes later is of other lines."""
    stacks, of = study.snapshot.stacks, study.history.lifetimes.stack
    lines = {stacks[one][0] if one >= 0 and stacks[one] else None for one in of[new].tolist()} - {None}
    return np.array(
        [one >= 0 and bool(stacks[one]) and stacks[one][0] in lines for one in of[states].tolist()], np.bool_
    )


def _sizes_of_which_all_have(states: IntArray, parameters: IntArray) -> IntArray:
    """The sizes of parameters of which each has its states, as many as each other one of that size."""
    sizes, which = numbered(parameters)
    owners, ordered = np.bincount(which, minlength=len(sizes)), np.sort(states)
    had = np.searchsorted(ordered, sizes, side="right") - np.searchsorted(ordered, sizes, side="left")
    return np.asarray(sizes[(had >= TWO_EACH * owners) & (had % np.maximum(owners, 1) == 0)])
