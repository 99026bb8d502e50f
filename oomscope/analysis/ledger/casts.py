"""Whether a program runs in 16 bits already, and the copies of weights that autocast casts."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.widths import frozen_are_of_32_bits
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import among

_PROJECTS = re.compile(r"^_in_projection|^multi_head_attention_forward$")
FROZEN = 0.4
"""Of the bytes of parameters: where fewer have gradients, the others are frozen."""
WIDE = 4
"""Bytes of a number in 32 bits."""
LEAST_COPIES = 4
"""Requests of half a weight's size in a forward: fewer may be chance."""
SMALL_WEIGHT = 64 << 10
"""Bytes up to which a parameter is a vector, which no matrix product casts."""


def is_mixed(run: Run) -> bool:
    """Whether weights are cast to half their size in every forward already, or are known to be 16 bits wide.

    A cast stands directly before the product that needs it, on the same line.
    """
    return has_halves(run) or bool(len(autocast_copies(run)))


def has_halves(run: Run) -> bool:
    """Whether parameters are known to be 16 bits wide."""
    tensors = run.study.snapshot.recorded.tensors
    return any("16" in (tensor.dtype or "") for tensor in tensors if tensor.category == "parameter")


def is_of_unknown_width(run: Run) -> bool:
    """Whether most parameters are frozen, and nothing tells of how many bits they are: such ones may have 16.

    A dropout's mask has a byte for each number of its result. Where that is four times as large, and no product makes
    what is twice as large, all is of 32 bits. So it is where sizes of weights tell, see `widths`.
    """
    if any(tensor.dtype for tensor in run.study.snapshot.recorded.tensors if tensor.category == "parameter"):
        return False
    return is_mostly_frozen(run) and not _dropouts_are_of_32_bits(run) and not frozen_are_of_32_bits(run)


def is_mostly_frozen(run: Run) -> bool:
    """Whether few of the bytes of parameters have gradients, as beside adapters.

    What an average of the weights makes in each step, and gives back, is no parameter.
    """
    begins = run.own_begins[run.own_begins < NEVER]
    moment = int(begins.max(initial=0))
    there = run.parameters & (run.begin <= moment) & (run.end > moment) if moment else run.parameters
    return bool(run.gradients.any()) and run.trained_alone.sum() < FROZEN * float(run.size[there].sum())


def _dropouts_are_of_32_bits(run: Run) -> bool:
    stacks = run.study.snapshot.stacks
    named = np.array([*(any(one.name == "dropout" for one in stacks[at][:2]) for at in range(len(stacks))), False])
    rows = np.flatnonzero(named[run.stack] & run.during(FORWARD) & ~run.recording.at_once)
    masks, results = rows[:-1], rows[1:]
    pairs = (results - masks == 1) & (run.stack[masks] == run.stack[results])
    masks = masks[pairs & (run.size[results] == WIDE * run.size[masks])]
    products = run.size[run.marked(Mark.LINEAR) & run.during(FORWARD)]
    return len(masks) > 0 and not np.isin(products, np.unique(run.size[masks]) * WIDE // 2).any()


def autocast_copies(run: Run) -> IntArray:
    """The requests that a forward makes of half a weight's size, directly before the product that needs it.

    They are there until autocast ends, so the next product finds them still: what a layer makes of small features may
    be as large, but goes. A result that a workspace follows is no copy. Empty where there are too few to be more than
    chance.
    """
    weights = run.trained[run.trained > SMALL_WEIGHT]
    rows = np.flatnonzero(run.during(FORWARD) & (run.marked(Mark.LINEAR) | _projects(run)))
    following = next_of_another_stack(rows, run.stack)[rows]
    later = (following >= 0) & (run.step[following] == run.step[rows])
    lasts = run.end[rows] > np.where(later, run.begin[following], run.begin[rows])
    next_too = (np.diff(rows) == 1) & (run.stack[rows[1:]] == run.stack[rows[:-1]])
    followed = rows[:-1][next_too & lasts[:-1] & ~run.recording.at_once[rows[1:]]]
    found: IntArray = followed[among(run.size[followed], weights // 2)]
    enough = len(found) >= max(LEAST_COPIES, len(weights) // 2) * max(run.steps, 1)
    # What layers make of few tokens may by chance be half as large as a weight, but not as half of the weights.
    cast = np.count_nonzero(among(weights // 2, run.size[found]))
    return found if enough and cast >= len(weights) // 2 else found[:0]


def _projects(run: Run) -> BoolArray:
    """bool[requests]: what torch's own attention makes of its weights, without a linear layer that says so."""
    stacks = run.study.snapshot.stacks
    inside = [any(_PROJECTS.search(frame.name) for frame in stacks[one][:2]) for one in range(len(stacks))]
    return np.array([*inside, False])[run.stack]


def next_of_another_stack(places: IntArray, stack: IntArray) -> IntArray:
    """int64[rows]: for each of the ascending `places`, the next one of another stack; -1 where there is none."""
    found = np.full(len(stack), -1, np.int64)
    if len(places):
        edges = np.flatnonzero(np.diff(stack[places])) + 1
        nearest = np.searchsorted(edges, np.arange(len(places)), side="right")
        found[places] = np.append(places[edges], -1)[nearest]
    return found
