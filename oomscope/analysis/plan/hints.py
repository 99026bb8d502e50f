"""What one recording alone tells of how each request grows with the shape: what it is, and what divides its size.

Parameters, their gradients and the optimizer's state do not depend on the batch. What a forward makes is linear in it,
and so is what the backward makes, unless it is as large as a parameter. A length is linear too, and its square divides
the scores of attention; the side of an image counts squared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import gcd

import numpy as np

from oomscope.analysis.labels.kinds import BUFFER, GRADIENT, INPUT, OPTIMIZER_STATE, PARAMETER, TEMPORARY, WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, BEFORE_RECORDING, FORWARD, OPTIMIZER
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.plan.calls import module_of, path_of
from oomscope.analysis.plan.pairs import PAIRS, TRIANGLES, Made, of_pairs
from oomscope.analysis.plan.recordings import Recording
from oomscope.analysis.plan.reductions import filled_by
from oomscope.analysis.plan.scores import softmaxes_by_name, written_out
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.whatif.extraction import by_request
from oomscope.frozen import frozen
from oomscope.model import NO_STACK, BoolArray, IntArray, package_path

BATCH, LENGTH, SIDE, UNKNOWN = "batch", "length", "side", "unknown"
_NAMES = (
    (BATCH, re.compile(r"batch|^bs$|^b$|^n$|micro|samples?$|images$|sequences$|requests$", re.IGNORECASE)),
    (SIDE, re.compile(r"side|image|img|resolution|^res$|crop|^size$|pixels", re.IGNORECASE)),
    (LENGTH, re.compile(r"seq|len|tokens|context|^ctx$|^[stlhw]$|steps$|frames|time|height|width|points|nodes",
                        re.IGNORECASE)),
)  # fmt: skip
_SPARSE = re.compile(r"^_?(make_)?sparse(_adam)?$|coalesce")
_CONSTANT = (PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE, WORKSPACE)
_PROJECTS = re.compile(r"^_in_projection")
_ATTENTION = re.compile(r"^multi_head_attention_forward$")
A_FEW = 1 / 16
"""Of a length: so many tokens may a padding add."""
MOST_GRADIENTS = 16
"""Requests of a backward for each weight of a size; where there are more, nearly all are gradients of activations."""
LEAST_COPIES = 4
SMALL_WEIGHT = 64 << 10
"""Bytes up to which a parameter is a vector, which no product casts."""
MASK = 4
"""Times as many bytes has a float32 as a truth value."""
SMALL = 4096
"""Bytes below which it does not matter how a request grows."""
_ITEM_SIZES = (4, 2, 8, 1)
IMAGE_KERNEL, VOLUME_KERNEL = 4, 5
"""Sides of the weight of a convolution."""
HALVINGS = 6
"""Of the side of an image, in a model of convolutions."""
LEAST_PATCH, CHANNELS, FLOAT, MOST_CROPS = 8, 3, 4, 16
"""Of images that are cut into patches."""
PYRAMID, OF_A_PLACE = 8, 512
"""Levels, and bytes that an input has for each place of them at most."""
LEAST_WORKSPACE = 1 << 20
"""Bytes; smaller ones lie in small segments and change nothing."""


def kind_of(parameter: str) -> str:
    """What the name of a parameter says of it: `BATCH`, `LENGTH`, `SIDE` or `UNKNOWN`."""
    return next((kind for kind, pattern in _NAMES if pattern.search(parameter)), UNKNOWN)


@frozen(eq=False)
class Hints:
    """For each request, the likely degree of each parameter, with the least and the greatest that may be.

    Attributes:
        degree, low, high: int8[requests, parameters].
        of_rows: bool[requests], which an optimizer makes of the rows of sparse gradients.
        filled_by: int64[requests], what a reduction that fills the card would take of a larger one, else 0.
    """

    degree: IntArray
    low: IntArray
    high: IntArray
    of_rows: BoolArray
    filled_by: IntArray


def hints(recording: Recording, parameters: Sequence[str]) -> Hints:
    """What `recording` alone tells."""
    facts = _Facts(recording)
    columns = [_column(facts, recording, name) for name in parameters]
    stacked = [np.stack([column[row] for column in columns], axis=1) for row in range(3)]
    return Hints(stacked[0], stacked[1], stacked[2], facts.of_rows, facts.filled_by)


class _Facts:
    """What is known of each request, refused ones among them."""

    def __init__(self, recording: Recording) -> None:
        study, row = recording.study, recording.subject.extraction.row
        self.size = recording.program.size
        refused = row < 0
        category = by_request(study.categories.astype(np.int64), row)
        phase = by_request(study.phases.astype(np.int64), row, FORWARD)
        stack = by_request(study.history.lifetimes.stack.astype(np.int64), row, NO_STACK)
        mark = study.roles.mark[stack]
        fixed = np.isin(category, _CONSTANT) & ~refused
        self.fixed = fixed | np.isin(phase, (OPTIMIZER, BEFORE_RECORDING)) & ~refused
        self.fixed[: _before_steps(recording)] = True
        weights = np.unique(self.size[(category == PARAMETER) | (category == GRADIENT)])
        # An optimizer makes what is as large as parameters, or of as many rows as a batch draws of a table.
        self.of_rows = (phase == OPTIMIZER) & (category == TEMPORARY) & _sparse(study, stack)
        self.of_rows &= ~np.isin(self.size, weights) & (self.size >= SMALL)
        self.fixed &= ~self.of_rows
        # A convolution's workspace holds its input or output in another layout, its weights, and a few bytes to align.
        # What cuDNN keeps of a recurrent layer for its backward begins with a few bytes, too.
        self.padded = (recording.at_once & (self.size >= LEAST_WORKSPACE)) | _made_by(
            study, stack, "torch/nn/modules/rnn.py"
        )
        self.filled_by = filled_by(recording)
        self.steps = len({unit.step for unit in recording.units if unit.step >= 0})
        self.inputs = (category == INPUT) & ~refused
        self.backward = phase == BACKWARD
        self.framed = recording.key >= 0
        self.attention: BoolArray = (mark & int(Mark.ATTENTION)) != 0
        self.linear: BoolArray = (mark & int(Mark.LINEAR)) != 0
        self.forward: BoolArray = (phase == FORWARD) & (stack >= 0) & (category != WORKSPACE)
        self.stack = stack
        self.study = study
        # A gradient on its way, or a copy of a weight in half the bytes, is as large as a parameter.
        self.like_weight = np.isin(self.size, np.concatenate([weights, weights // 2])) & (self.size >= SMALL)
        self.like_weight &= ~(self.backward & np.isin(self.size, _too_many(self, self.size[category == PARAMETER])))
        self.projects = _in_function(study, stack, _PROJECTS)
        self.copies = _copies(self, weights, recording)


def _too_many(facts: _Facts, parameters: IntArray) -> IntArray:
    """Sizes of which a backward makes more than gradients of weights: one for each, and one more in each precision."""
    weights, halves = Counter(parameters.tolist()), Counter((parameters // 2).tolist())
    made = Counter(facts.size[facts.backward & facts.like_weight].tolist())
    steps = max(facts.steps, 1)
    found = [one for one, count in made.items() if count > MOST_GRADIENTS * steps * (weights[one] + halves[one])]
    return np.array(found, np.int64)


def _copies(facts: _Facts, weights: IntArray, recording: Recording) -> BoolArray:
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


def _made_by(study: DeviceStudy, stack: IntArray, file: str) -> BoolArray:
    """bool[requests]: which have a frame of a file of torch."""
    stacks = study.snapshot.stacks
    inside = [any(package_path(frame.filename) == file for frame in stacks[one]) for one in range(len(stacks))]
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


def _column(facts: _Facts, recording: Recording, name: str) -> tuple[IntArray, IntArray, IntArray]:
    """int8[requests] each: the degree in one parameter, the least, the greatest."""
    value = _values(recording, name, len(facts.size))
    kind = kind_of(name)
    usual = (3 if _is_of_volumes(facts, recording, value) else 2) if kind == SIDE else 1
    known = value > 1
    value = np.maximum(value, 1)
    free = ~facts.fixed & (recording_values(recording, name) | known)
    divides = (facts.size % value == 0) | facts.padded if kind != SIDE else np.ones(len(value), np.bool_)
    degree = np.where(free & divides, usual, 0)
    high = np.where(free, usual, 0)
    degree[facts.of_rows & free] = usual
    low = degree.copy()
    low[facts.of_rows] = 0
    unsure = ((facts.backward & facts.like_weight) | facts.copies) & free
    degree[unsure] = 0
    low[unsure] = 0
    if kind == SIDE:
        low[~_of_an_image(facts.size, value)] = 0
        beside, joined = _beside_an_image(facts, recording, value)
        degree[beside & free] = 0
        low[(beside | joined) & free] = 0
    if kind == LENGTH:
        near = _about_as_long(facts.size, free & divides & ~facts.padded, free & ~divides)
        degree[near] = usual
        named, unnamed = _squares(facts, value, free), _unnamed_squares(facts, value, free)
        square = named | unnamed
        degree[square] = 2
        high[square] = 2
        low[square & ~facts.attention] = 1
        made = Made(facts.size, facts.linear, facts.forward & facts.framed)
        pairs, triangles = of_pairs(made, recording, value, _samples(recording, len(value)))
        for found, power in ((pairs & free, PAIRS), (triangles & free, TRIANGLES)):
            degree[found], high[found] = power, power
            low[found] = 1
    full = (facts.filled_by > 0) & free
    degree[full] = 0
    low[full] = high[full] = usual
    return degree.astype(np.int8), low.astype(np.int8), np.maximum(high, degree).astype(np.int8)


def _about_as_long(size: IntArray, divides: BoolArray, others: BoolArray) -> BoolArray:
    """Which of `others` are as large as what the length divides, but for a few tokens: padded, or without the last."""
    lengths = np.unique(size[divides & (size >= SMALL)])
    if not len(lengths):
        return np.zeros(len(size), np.bool_)
    place = np.clip(np.searchsorted(lengths, size), 1, max(len(lengths) - 1, 1))
    pair = np.stack([lengths[np.minimum(place - 1, len(lengths) - 1)], lengths[np.minimum(place, len(lengths) - 1)]])
    apart = np.abs(pair - size).min(axis=0)
    return np.asarray(others & (size >= SMALL) & (apart <= size * A_FEW))


def _is_of_volumes(facts: _Facts, recording: Recording, side: IntArray) -> bool:
    """Whether a side is that of a cube: by the sides of kernels, where the recording has the shapes of weights.

    Else the largest input has a byte or more for each voxel; an image has a few for each pixel.
    """
    tensors = recording.study.snapshot.recorded.tensors
    sides = {len(tensor.shape) for tensor in tensors if tensor.category == "parameter" and tensor.shape}
    if sides & {IMAGE_KERNEL, VOLUME_KERNEL}:
        return VOLUME_KERNEL in sides
    batches = [name for shape in recording.shapes for name in shape if kind_of(name) == BATCH]
    if not batches or not facts.inputs.any():
        return False
    samples = np.maximum(_values(recording, batches[0], len(side)), 1)
    return bool((facts.inputs & (side > HALVINGS) & (facts.size >= samples * side**3)).any())


def _of_an_image(size: IntArray, side: IntArray) -> BoolArray:
    """Which sizes the square of the side divides, or of a half of it, a quarter and so on."""
    found = np.zeros(len(size), np.bool_)
    for power in range(HALVINGS + 1):
        part = side >> power
        found |= (side % (1 << power) == 0) & (part > 1) & (size % np.maximum(part * part, 1) == 0)
    return found


def _beside_an_image(facts: _Facts, recording: Recording, side: IntArray) -> tuple[BoolArray, BoolArray]:
    """What has a length that does not depend on the side, as text has, and what joins both.

    Of an input's factors, one that is odd and in no side of a weight, nor in that of the image, is such a length.
    Without the shapes of weights, nothing.
    """
    tensors = recording.study.snapshot.recorded.tensors
    widths = {width for one in tensors if one.category == "parameter" for width in one.shape or () if width > 1}
    batches = [name for shape in recording.shapes for name in shape if kind_of(name) == BATCH]
    found, joined = np.zeros(len(side), np.bool_), np.zeros(len(side), np.bool_)
    if not widths or not batches:
        return found, joined
    samples = np.maximum(_values(recording, batches[0], len(side)), 1)
    each = np.where(facts.size % samples == 0, facts.size // samples, 1)
    known = {*widths, *np.unique(side[side > 1]).tolist()}
    sides = np.unique(side[side > 1]).tolist()
    inputs = [size for size in np.unique(each[facts.inputs & (side > 1)]).tolist() if not _of_a_pyramid(size, sides)]
    kernels = [one.shape for one in tensors if one.category == "parameter" and one.shape]
    patches = {shape[-1] for shape in kernels if len(shape) == IMAGE_KERNEL}
    crops = {_without(tokens, known) for size in inputs for tokens in _tokens_of_crops(size, sides, patches)} - {1}
    for length in ({_without(size, known) for size in inputs} | crops) - {1}:
        found |= (each % length == 0) & (side > 1)
        if length in crops:
            continue
        for power in range(HALVINGS):
            tokens = length + (side >> power) ** 2
            joined |= (each % tokens == 0) & (side >> power > 1) & ~found
    return found, joined


def _tokens_of_crops(size: int, sides: Iterable[int], patches: Iterable[int]) -> list[int]:
    """How many tokens an input of images has that are not of the side: crops of another one, several a sample.

    A transformer cuts them into patches, and may have one token more.
    """
    found = []
    for patch in (one for one in patches if one >= LEAST_PATCH):
        for side in range(max(sides, default=0) // patch * patch, 2 * patch, -patch):
            count, rest = divmod(size, side * side * CHANNELS * FLOAT)
            if count and not rest:
                found += [] if side in sides or count > MOST_CROPS else [(side // patch) ** 2 + more for more in (0, 1)]
                break
    return found


def _of_a_pyramid(size: int, sides: Iterable[int]) -> bool:
    """Whether an input has something for each place of several levels of an image, each half as wide as the last."""
    for side in sides:
        squares = [(side >> level) ** 2 for level in range(PYRAMID)]
        totals = (sum(squares[first:last]) for first in range(PYRAMID) for last in range(first + 2, PYRAMID + 1))
        if any(total > 1 and size % total == 0 and size // total <= OF_A_PLACE for total in totals):
            return True
    return False


def _without(size: int, known: Iterable[int]) -> int:
    """The odd part of a size, without what it has in common with any of `known`."""
    for number in (2, *known):
        while (common := gcd(size, number)) > 1:
            size //= common
    return size


def _squares(facts: _Facts, value: IntArray, free: BoolArray) -> BoolArray:
    """Scores: made in attention, divided by the square of the length; and what the backward makes of that size.

    A tensor that some other line makes of the same size, without attention, is none.
    """
    divides = free & (facts.size % np.maximum(value * value, 1) == 0) & (value > 1) & (facts.size >= value * value)
    scores = divides & facts.attention & facts.framed & ~facts.projects
    elsewhere = np.unique(facts.size[free & facts.framed & ~facts.attention])
    sizes = np.setdiff1d(np.unique(facts.size[scores]), elsewhere)
    found: BoolArray = divides & np.isin(facts.size, sizes)
    return found


def _unnamed_squares(facts: _Facts, value: IntArray, free: BoolArray) -> BoolArray:
    """Scores that are told by their sizes alone, the masks beside them, and what the backward makes of their size."""
    stacks = facts.study.snapshot.stacks
    found = np.zeros(len(value), np.bool_)
    for tokens in np.unique(value[free & (value > 1)]).tolist():
        here = facts.forward & (value == tokens)
        known = {one: path_of(stacks[one]) for one in np.unique(facts.stack[here]).tolist()}
        rows = np.flatnonzero(here & ~facts.projects)
        softmax = softmaxes_by_name(stacks, facts.stack)
        scores = written_out(facts.size, facts.stack, rows, facts.linear, known, [tokens], 1, softmax)
        lines = np.unique(facts.stack[scores])
        others = np.unique(facts.size[here & ~np.isin(facts.stack, lines)])
        sizes = np.setdiff1d(np.unique(facts.size[scores]), others)
        modules = {module_of(known[one]) for one in lines.tolist()}
        inside = np.array([one for one in known if module_of(known[one]) in modules], np.int64)
        beside = [*(tokens * tokens * item for item in _ITEM_SIZES), *_masks_and_places(sizes, tokens)]
        masks = here & np.isin(facts.stack, inside) & np.isin(facts.size, beside)
        sizes = np.union1d(sizes, np.setdiff1d(np.unique(facts.size[masks]), others))
        found |= masks | ((value == tokens) & free & np.isin(facts.size, sizes))
    return found & free


def _masks_and_places(scores: IntArray, tokens: int) -> list[int]:
    """Bytes of the masks of a dropout of scores, and of products with relative places, of which there are 2n − 1.

    A program may work on a part of the tokens that it is told, as after strided convolutions.
    """
    lengths = [tokens >> halvings for halvings in range(HALVINGS) if tokens >> halvings > 1]
    places = [size * (2 * length - 1) // length for size in scores.tolist() for length in lengths]
    return [*(scores // MASK).tolist(), *places]


def _samples(recording: Recording, count: int) -> IntArray:
    """int64[requests]: the batch at which each was made; 0 where no parameter is one."""
    batches = [name for shape in recording.shapes for name in shape if kind_of(name) == BATCH]
    return _values(recording, batches[0], count) if batches else np.zeros(count, np.int64)


def _values(recording: Recording, name: str, count: int) -> IntArray:
    """int64[requests]: the value of a parameter at which each was made; 0 where it is not known."""
    value = np.zeros(count, np.int64)
    for unit in recording.units:
        value[unit.begin : unit.end] = unit.shape.get(name, 0)
    return value


def recording_values(recording: Recording, name: str) -> BoolArray:
    """bool[requests]: which were made at a known value of a parameter."""
    return np.asarray(_values(recording, name, recording.program.requests) > 0)


def guessable(parameters: Sequence[str], varied: Mapping[str, bool]) -> list[str]:
    """The parameters that the recordings do not vary and whose names do not say how sizes depend on them."""
    return [name for name in parameters if not varied[name] and kind_of(name) == UNKNOWN]
