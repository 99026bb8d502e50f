"""What is known of each request of a recording before it is asked how that grows with the shape."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from oomscope.analysis.labels import own_layers
from oomscope.analysis.labels.kinds import BUFFER, GRADIENT, INPUT, OPTIMIZER_STATE, PARAMETER, TEMPORARY, WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, BEFORE_RECORDING, FORWARD, OPTIMIZER
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.plan.growth.reductions import filled_by
from oomscope.analysis.plan.recordings import Recording
from oomscope.analysis.plan.requests.below_optimizer import below_optimizer
from oomscope.analysis.plan.requests.weights import of_weights
from oomscope.analysis.plan.requests.widths import sides_of, widths_of
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.whatif.extraction import by_request
from oomscope.model import NO_STACK, BoolArray, IntArray, package_path

_SPARSE = re.compile(r"^_?(make_)?sparse(_adam)?$|coalesce")
_CONSTANT = (PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE, WORKSPACE)
_CONVOLUTION = re.compile(r"^torch/nn/modules/conv\.py$")
_RECURRENT = re.compile(r"^torch/nn/modules/rnn\.py$")
_LAYERS = re.compile(r"^torch/nn/modules/(linear|conv|sparse|normalization|batchnorm|instancenorm|rnn)\.py$")
_DROPOUT = re.compile(r"dropout")
_PROJECTS = re.compile(r"^_in_projection")
_ATTENTION = re.compile(r"^multi_head_attention_forward$")
MOST_GRADIENTS = 16
"""Requests of a backward for each weight of a size; where there are more, nearly all are gradients of activations."""
LEAST_COPIES = 4
SMALL_WEIGHT = 64 << 10
"""Bytes up to which a parameter is a vector, which no product casts."""
LEAST_VECTOR = 64
"""Bytes of a vector that tells how many channels something has."""
SMALL = 4096
"""Bytes below which it does not matter how a request grows."""
LEAST_WORKSPACE = 1 << 20
"""Bytes; smaller ones lie in small segments and change nothing."""


class Facts:
    """What is known of each request, refused ones among them."""

    def __init__(self, recording: Recording) -> None:
        study, row = recording.study, recording.subject.extraction.row
        self.size = recording.program.size
        refused = row < 0
        category = by_request(study.categories.astype(np.int64), row)
        phase = by_request(study.phases.astype(np.int64), row, FORWARD)
        stack = by_request(study.history.lifetimes.stack.astype(np.int64), row, NO_STACK)
        mark = own_layers.marks(study)[stack]
        fixed = np.isin(category, _CONSTANT) & ~refused
        self.fixed = fixed | np.isin(phase, (OPTIMIZER, BEFORE_RECORDING)) & ~refused
        self.fixed[: _before_steps(recording)] = True
        weights = np.unique(self.size[(category == PARAMETER) | (category == GRADIENT)])
        # An optimizer makes what is as large as parameters, or of as many rows as a batch draws of a table.
        self.of_rows = (phase == OPTIMIZER) & (category == TEMPORARY) & _sparse(study, stack)
        self.of_rows &= ~np.isin(self.size, weights) & (self.size >= SMALL)
        self.fixed &= ~self.of_rows
        # A convolution's workspace holds its input or output in another layout, its weights, and a few bytes to align.
        # What cuDNN keeps of a recurrent layer for its backward begins with a few bytes, too, and may hold its weights.
        kept = self.size[_made_by(study, stack, _RECURRENT)]
        self.kept_by_kernels = np.isin(self.size, kept) & (self.size >= LEAST_WORKSPACE)
        self.padded = (recording.at_once & (self.size >= LEAST_WORKSPACE)) | np.isin(self.size, kept)
        self.convolved = _made_by(study, stack, _CONVOLUTION)
        self.layered = _made_by(study, stack, _LAYERS)
        self.vectors = _vectors(self.size[category == PARAMETER])
        self.widths = widths_of(self.size[category == PARAMETER], self.vectors)
        self.sides = sides_of(self.size[category == PARAMETER])
        self.weights = np.unique(self.size[category == PARAMETER])
        self.filled_by = filled_by(recording)
        self.steps = len({unit.step for unit in recording.units if unit.step >= 0})
        self.inputs = (category == INPUT) & ~refused
        self.backward = phase == BACKWARD
        self.gradient = (category == GRADIENT) & ~refused
        self.framed = recording.key >= 0
        self.attention: BoolArray = (mark & int(Mark.ATTENTION)) != 0
        self.linear: BoolArray = (mark & int(Mark.LINEAR)) != 0
        self.forward: BoolArray = (phase == FORWARD) & (stack >= 0) & (category != WORKSPACE)
        parameters = self.size[category == PARAMETER]
        self.fixed |= of_weights(study.snapshot.stacks, self.size, stack, self.forward, parameters)
        self.stack = stack
        self.study = study
        # A gradient on its way, or a copy of a weight in half the bytes, is as large as a parameter.
        self.like_weight = np.isin(self.size, np.concatenate([weights, weights // 2])) & (self.size >= SMALL)
        self.like_weight &= ~(self.backward & np.isin(self.size, _too_many(self, self.size[category == PARAMETER])))
        self.below_optimizer = below_optimizer(study.snapshot.stacks, stack, phase == OPTIMIZER) & ~self.backward
        self.dropout = _in_function(study, stack, _DROPOUT)
        self.projects = _in_function(study, stack, _PROJECTS)
        self.copies = _copies(self, weights, recording)


def _vectors(parameters: IntArray) -> list[int]:
    """How many channels vectors of weights may have, such as those of a norm, in 32 or in 16 bits."""
    small = np.unique(parameters[(parameters >= LEAST_VECTOR) & (parameters <= SMALL_WEIGHT)])
    return sorted({one // item for one in small.tolist() for item in (4, 2)}, reverse=True)


def _too_many(facts: Facts, parameters: IntArray) -> IntArray:
    """Sizes of which a backward makes more than gradients of weights: one for each, and one more in each precision."""
    weights, halves = Counter(parameters.tolist()), Counter((parameters // 2).tolist())
    made = Counter(facts.size[facts.backward & facts.like_weight].tolist())
    steps = max(facts.steps, 1)
    found = [one for one, count in made.items() if count > MOST_GRADIENTS * steps * (weights[one] + halves[one])]
    return np.array(found, np.int64)


def _copies(facts: Facts, weights: IntArray, recording: Recording) -> BoolArray:
    """bool[requests]: weights that autocast casts: half of one, made by a product directly before its result.

    None where there are too few to be more than chance.
    """
    following = np.append((facts.stack[1:] == facts.stack[:-1]) & ~recording.at_once[1:], [False])
    product = facts.linear | facts.projects | _in_function(facts.study, facts.stack, _ATTENTION)
    found = facts.forward & product & following & (facts.size >= SMALL) & np.isin(facts.size, weights // 2)
    large = np.count_nonzero(weights > SMALL_WEIGHT)
    enough = np.count_nonzero(found) >= max(LEAST_COPIES, large // 2) * max(facts.steps, 1)
    return np.asarray(found & enough)


def _in_function(study: DeviceStudy, stack: IntArray, name: re.Pattern[str]) -> BoolArray:
    """bool[requests]: which are made by a function of that name, or by one that it calls."""
    stacks = study.snapshot.stacks
    inside = [any(name.search(frame.name) for frame in stacks[one][:2]) for one in range(len(stacks))]
    found: BoolArray = np.array([*inside, False])[stack]
    return found


def _made_by(study: DeviceStudy, stack: IntArray, file: re.Pattern[str]) -> BoolArray:
    """bool[requests]: which have a frame of such a file of torch."""
    stacks = study.snapshot.stacks
    inside = [any(file.match(package_path(one.filename) or "") for one in stacks[row]) for row in range(len(stacks))]
    found: BoolArray = np.array([*inside, False])[stack]
    return found


def _sparse(study: DeviceStudy, stack: IntArray) -> BoolArray:
    """bool[requests]: which have a function of torch's optimizers that is for sparse gradients."""
    stacks = study.snapshot.stacks
    inside = [any(_SPARSE.search(frame.name) for frame in stacks[one]) for one in range(len(stacks))]
    found: BoolArray = np.array([*inside, False])[stack]
    return found


def _before_steps(recording: Recording) -> int:
    first = recording.units[0] if recording.units else None
    return first.end if first is not None and first.step < 0 and len(recording.units) > 1 else 0
