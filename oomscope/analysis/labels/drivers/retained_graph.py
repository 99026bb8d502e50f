"""Autograd graphs of earlier passes that something keeps: what their forwards saved is all still there."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.stack_roles import Role
from oomscope.history import BEFORE
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending

SLUG = "retained_graph"
CATEGORIES = (kinds.ACTIVATION, kinds.TEMPORARY, kinds.INPUT, kinds.UNKNOWN)
BECOMES = kinds.ACTIVATION
EVIDENCE = ("grows_at_several_lines_of_the_forward", "keeps_much_of_what_each_pass_makes")
LOOKS_LIKE = ("accumulated_tensors", "gradient_accumulation", "activations")

GRAPH_SHARE = 0.3
"""Of what a pass makes in its forward. A kept graph keeps all that its operations saved, 0.6 to 1; a list of outputs
keeps what one or two layers made, at most 0.1 where the outputs come from three lines and more."""
LEAST_STACKS = 3
"""A list of outputs with their inputs has two, whatever the share."""


def find(live: LiveBlocks) -> BoolArray:
    """What grows by generations, if it is graphs."""
    grown = live.generations
    return grown if is_graph(live, grown) else live.none()


def is_graph(live: LiveBlocks, grown: BoolArray) -> bool:
    """Whether what grows is a good part of all that its passes made in their forwards."""
    stacks, count = np.unique(live.stack[grown & (live.stack >= 0)], return_counts=True)
    growing = stacks[live.study.roles.role[stacks] == Role.FORWARD]
    if len(growing) < LEAST_STACKS:
        return False
    lifetimes, size = live.study.history.lifetimes, live.study.history.size
    # The line that is met most often divides the passes.
    births = ascending(lifetimes.born[live.rows[grown & (live.stack == stacks[np.argmax(count)])]])
    births = births[births > BEFORE]
    if len(births) < 2:
        return False
    forward = (live.study.roles.role[lifetimes.stack] == Role.FORWARD) & (lifetimes.born > BEFORE)
    forward &= ~np.isin(live.study.categories, (kinds.PARAMETER, kinds.BUFFER))
    made = _between(lifetimes.born[forward], size[forward], births)
    rows = live.rows[grown & (lifetimes.born[live.rows] > BEFORE)]
    kept = _between(lifetimes.born[rows], size[rows], births)
    return float(np.median(kept / np.maximum(np.maximum(made, kept), 1))) >= GRAPH_SHARE


def _between(born: IntArray, size: IntArray, ends: IntArray) -> IntArray:
    """Bytes born from each of the ascending `ends` up to the next."""
    part = np.searchsorted(ends, born, side="right") - 1
    inside = (part >= 0) & (part < len(ends) - 1)
    return np.bincount(part[inside], weights=size[inside], minlength=len(ends) - 1).astype(np.int64)
