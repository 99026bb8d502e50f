"""Autograd graphs of earlier passes that something keeps: what their forwards saved is all still there."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.stack_roles import Role
from oomscope.model import BoolArray

SLUG = "retained_graph"
CATEGORIES = (kinds.ACTIVATION, kinds.TEMPORARY, kinds.INPUT, kinds.UNKNOWN)
BECOMES = kinds.ACTIVATION
EVIDENCE = ("grows_at_many_lines_of_the_forward",)
LOOKS_LIKE = ("accumulated_tensors", "gradient_accumulation", "activations")

GRAPH_SHARE = 0.3
"""Of the forward's stacks that save something for the backward: a kept graph keeps what all of them saved, though some
sites are too small to be seen growing. A list of results keeps one or two."""
LEAST_STACKS = 3
"""A list of outputs with their inputs has two, whatever the share."""


def find(live: LiveBlocks) -> BoolArray:
    """What grows by generations, if it is graphs."""
    grown = live.generations
    return grown if is_graph(live, grown) else live.none()


def is_graph(live: LiveBlocks, grown: BoolArray) -> bool:
    """Whether a good part of the stacks whose blocks a backward needs is among what grows."""
    study = live.study
    saved = np.unique(study.history.lifetimes.stack[study.categories == kinds.ACTIVATION])
    saved = saved[study.roles.role[saved] == Role.FORWARD]
    growing = np.unique(live.stack[grown & (live.role == Role.FORWARD)])
    return len(growing) >= LEAST_STACKS and len(growing) >= GRAPH_SHARE * max(len(saved), 1)
