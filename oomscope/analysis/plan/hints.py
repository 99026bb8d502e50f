"""What one recording alone tells of how each request grows with the shape: what it is, and what divides its size.

Parameters, their gradients and the optimizer's state do not depend on the batch. What a forward makes is linear in it,
and so is what the backward makes, unless it is as large as a parameter. A length is linear too, and its square divides
the scores of attention; the side of an image counts squared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import gcd

import numpy as np

from oomscope.analysis.plan.facts import SMALL, Facts
from oomscope.analysis.plan.pairs import PAIRS, TRIANGLES, Made, of_pairs
from oomscope.analysis.plan.recordings import Recording
from oomscope.analysis.plan.scores import HALVINGS
from oomscope.analysis.plan.squares import squares, squares_of_images, unnamed_squares
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray

BATCH, LENGTH, SIDE, UNKNOWN = "batch", "length", "side", "unknown"
_NAMES = (
    (BATCH, re.compile(r"batch|^bs$|^b$|^n$|micro|samples?$|images$|sequences$|requests$", re.IGNORECASE)),
    (SIDE, re.compile(r"side|image|img|resolution|^res$|crop|^size$|pixels", re.IGNORECASE)),
    (LENGTH, re.compile(r"seq|len|tokens|context|^ctx$|^[stlhw]$|steps$|frames|time|height|width|points|nodes",
                        re.IGNORECASE)),
)  # fmt: skip
A_FEW = 1 / 16
"""Of a length: so many tokens may a padding add."""
OF_AN_IMAGE, OF_A_VOLUME = 2, 3
"""By which power what a forward makes grows with a side."""
IMAGE_KERNEL, VOLUME_KERNEL = 4, 5
"""Sides of the weight of a convolution."""
LEAST_PATCH, CHANNELS, FLOAT, MOST_CROPS = 8, 3, 4, 16
"""Of images that are cut into patches."""
PYRAMID, OF_A_PLACE = 8, 512
"""Levels, and bytes that an input has for each place of them at most."""


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
    facts = Facts(recording)
    columns = [_column(facts, recording, name) for name in parameters]
    stacked = [np.stack([column[row] for column in columns], axis=1) for row in range(3)]
    return Hints(stacked[0], stacked[1], stacked[2], facts.of_rows, facts.filled_by)


def _column(facts: Facts, recording: Recording, name: str) -> tuple[IntArray, IntArray, IntArray]:
    """int8[requests] each: the degree in one parameter, the least, the greatest."""
    value = _values(recording, name, len(facts.size))
    kind = kind_of(name)
    usual = (OF_A_VOLUME if _is_of_volumes(facts, recording, value) else OF_AN_IMAGE) if kind == SIDE else 1
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
        if usual == OF_AN_IMAGE:
            scores = squares_of_images(facts, value, free)
            degree[scores] = high[scores] = 2 * usual
            low[scores] = usual
    if kind == LENGTH:
        near = _about_as_long(facts.size, free & divides & ~facts.padded, free & ~divides)
        degree[near] = usual
        named, unnamed = squares(facts, value, free), unnamed_squares(facts, value, free)
        square = named | unnamed
        degree[square] = 2
        high[square | (free & _as_large_as_a_softmax(facts))] = 2
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


def _as_large_as_a_softmax(facts: Facts) -> BoolArray:
    """bool[requests]: what may be scores of attention, whatever its size says: a softmax makes some as large.

    Not a `log_softmax`, which is of a loss.
    """
    stacks = facts.study.snapshot.stacks
    named = np.array([any(frame.name == "softmax" for frame in stacks[one]) for one in range(len(stacks))] + [False])
    made = named[facts.stack] & facts.forward & (facts.size >= SMALL)
    return np.isin(facts.size, np.unique(facts.size[made]))


def _about_as_long(size: IntArray, divides: BoolArray, others: BoolArray) -> BoolArray:
    """Which of `others` are as large as what the length divides, but for a few tokens: padded, or without the last."""
    lengths = np.unique(size[divides & (size >= SMALL)])
    if not len(lengths):
        return np.zeros(len(size), np.bool_)
    place = np.clip(np.searchsorted(lengths, size), 1, max(len(lengths) - 1, 1))
    pair = np.stack([lengths[np.minimum(place - 1, len(lengths) - 1)], lengths[np.minimum(place, len(lengths) - 1)]])
    apart = np.abs(pair - size).min(axis=0)
    return np.asarray(others & (size >= SMALL) & (apart <= size * A_FEW))


def _is_of_volumes(facts: Facts, recording: Recording, side: IntArray) -> bool:
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


def _beside_an_image(facts: Facts, recording: Recording, side: IntArray) -> tuple[BoolArray, BoolArray]:
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
