"""What one recording alone tells of how each request grows with the shape: what it is, and what divides its size.

Parameters, their gradients and the optimizer's state do not depend on the batch. What a forward makes is linear in it,
and so is what the backward makes, unless it is as large as a parameter. A length is linear too, and its square divides
the scores of attention; the side of an image counts squared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

import numpy as np

from oomscope.analysis.plan.kinds import LENGTH, SIDE, batch_among, kind_of
from oomscope.analysis.plan.recordings import Recording
from oomscope.analysis.plan.requests.below_optimizer import share_of_batch
from oomscope.analysis.plan.requests.facts import SMALL, Facts
from oomscope.analysis.plan.requests.image_places import divided_by_squares, of_its_places, of_other_places
from oomscope.analysis.plan.requests.modulated import weights_of_samples
from oomscope.analysis.plan.requests.pairs import PAIRS, TRIANGLES, Made, may_be_of_pairs, of_pairs, of_triples
from oomscope.analysis.plan.requests.patches import made_of, tokens_of, with_a_few_more, with_learned_ones
from oomscope.analysis.plan.requests.scores import HALVINGS, LEAST_TOKENS
from oomscope.analysis.plan.requests.scores_in_between import scores_in_between
from oomscope.analysis.plan.requests.softmaxes import into_products, made_by_softmax, of_softmaxes
from oomscope.analysis.plan.requests.squares import (
    between_gradients,
    of_two_places,
    squares,
    squares_of_images,
    unnamed_squares,
)
from oomscope.analysis.plan.requests.strides import strided
from oomscope.analysis.plan.requests.texts import lengths_of_texts
from oomscope.analysis.plan.requests.widths import has_known_width
from oomscope.analysis.plan.requests.windows import has_windows
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray

A_FEW = 1 / 16
"""Of a length: so many tokens may a padding add."""
OF_AN_IMAGE, OF_A_VOLUME = 2, 3
"""By which power what a forward makes grows with a side."""
PARTS = (1 / 2, 1 / 3, 1 / 4)
"""Of a batch, that an evaluation may have."""
NEARLY = 0.03
"""Of such a part: by so much an evaluation may miss it where the data decides, as how many edges a graph has."""
IMAGE_KERNEL, VOLUME_KERNEL = 4, 5
"""Sides of the weight of a convolution."""
LEAST_PATCH, CHANNELS, FLOAT, MOST_CROPS = 8, 3, 4, 16
"""Of images that are cut into patches."""
LEAST_SIDE = 64
"""Pixels of an image."""
PYRAMID, OF_A_PLACE = 8, 512
"""Levels, and bytes that an input has for each place of them at most."""


@frozen(eq=False)
class Hints:
    """For each request, the likely degree of each parameter, with the least and the greatest that may be.

    Attributes:
        degree, low, high: int64[requests, parameters].
        of_rows: bool[requests], which an optimizer makes of the rows of sparse gradients.
        filled_by: int64[requests], what a reduction that fills the card would take of a larger one, else 0.
        carried: bool[requests, parameters], whether its size tells how it grows: it has the parameter as a factor, or
            what the program makes of it, or it is what does not grow.
    """

    degree: IntArray
    low: IntArray
    high: IntArray
    of_rows: BoolArray
    filled_by: IntArray
    carried: BoolArray


def hints(recording: Recording, parameters: Sequence[str]) -> Hints:
    """What `recording` alone tells."""
    facts = Facts(recording)
    columns = [_column(facts, recording, name) for name in parameters]
    degree, low, high = (np.stack([one[part] for one in columns], axis=1) for part in (_DEGREE, _LOW, _HIGH))
    carried = np.stack([column[_CARRIED] > 0 for column in columns], axis=1)
    return Hints(degree, low, high, facts.of_rows, facts.filled_by, carried)


_DEGREE, _LOW, _HIGH, _CARRIED = range(4)


def _column(facts: Facts, recording: Recording, name: str) -> IntArray:
    """int64[4, requests]: the degree in one parameter, the least, the greatest; whether the size tells it."""
    value = _values(recording, name, len(facts.size))
    kind = kind_of(name, [one for shape in recording.shapes for one in shape])
    usual = (OF_A_VOLUME if _is_of_volumes(facts, recording, value) else OF_AN_IMAGE) if kind == SIDE else 1
    free = ~facts.fixed & (recording_values(recording, name) | (value > 1))
    at = _At(np.maximum(value, 1), _samples(recording, len(value)), free)
    others = [*strided(facts, at.value, at.samples), *_without_the_last(facts, at)] if kind == LENGTH else []
    others += with_a_few_more(facts, at.value, at.samples, free) if kind == LENGTH else []
    divides = np.ones(len(value), np.bool_)
    if kind != SIDE:
        divides = (facts.size % at.value == 0) | facts.padded | _divided(facts.size, others)
    found = np.zeros((4, len(value)), np.int64)
    found[_DEGREE] = np.where(free & (divides | facts.of_rows), usual, 0)
    found[_HIGH] = np.where(free, usual, 0)
    found[_LOW] = np.where(facts.of_rows, 0, found[_DEGREE])
    found[_LOW, facts.kept_by_kernels & (facts.size % at.value != 0)] = 0
    unsure = ((facts.backward & facts.like_weight) | facts.copies) & free
    found[_DEGREE, unsure] = found[_LOW, unsure] = 0
    if kind == SIDE:
        _of_side(found, facts, recording, at, usual)
    else:
        found[_CARRIED] = divides
    if kind == LENGTH:
        _of_length(found, facts, recording, at, divides, others)
        if _has_images(facts, at):
            # Their tokens may stand beside those of the sequence, so that what is made of both grows less.
            found[_LOW, free] = 0
    if name == batch_among(recording.shapes):
        _of_evaluations(found, facts, free)
        pairs = of_two_places(facts, at.value, np.ones_like(at.value), free)
        found[_DEGREE, pairs] = found[_HIGH, pairs] = PAIRS
        found[_LOW, pairs] = 1
    full = (facts.filled_by > 0) & free
    found[_DEGREE, full] = 0
    found[_LOW, full] = found[_HIGH, full] = usual
    found[_HIGH] = np.maximum(found[_HIGH], found[_DEGREE])
    found[_CARRIED] |= ~free | unsure | full | facts.of_rows | recording.at_once
    return found


def _of_side(found: IntArray, facts: Facts, recording: Recording, at: _At, usual: int) -> None:
    """What the side of an image tells beside that what is made of images grows with its square."""
    free = at.free
    of_image = divided_by_squares(facts.size, at.value)
    found[_LOW, ~of_image] = 0
    tokens = tokens_of(facts, at.value, at.samples, free) if usual == OF_AN_IMAGE else np.zeros_like(at.value)
    beside, joined = _beside_an_image(facts, recording, at.value, tokens)
    found[_DEGREE, beside & free] = 0
    found[_LOW, (beside | joined) & free] = 0
    found[_LOW, weights_of_samples(facts, at.samples) & free] = 0
    found[_CARRIED] = beside | joined | of_its_places(facts.size, at.value, at.samples)
    if usual == OF_AN_IMAGE:
        if not has_windows(facts.study.snapshot):
            found[_LOW, of_other_places(facts, at.value, at.samples, tokens) & free] = 0
        of_tokens = made_of(facts.size, tokens, at.samples)
        found[_LOW, of_tokens & free] = usual
        found[_DEGREE, free & (tokens > 0) & ~of_tokens & ~of_image] = 0
        if not tokens.any():
            learned = with_learned_ones(facts, at.value, at.samples, free)
            found[_LOW, made_of(facts.size, learned, at.samples) & free] = usual - 1
        scores = squares_of_images(facts, at.value, free) | _squares_of(facts, tokens, free)
        found[_DEGREE, scores] = found[_HIGH, scores] = 2 * usual
        found[_LOW, scores] = usual
        found[_CARRIED] |= of_tokens | scores
        # Between windows of a fixed size they would not, but then nothing tells that either.
        may_be = into_products(facts, recording.at_once, facts.size >= SMALL) & free & (found[_DEGREE] == usual)
        unnamed = scores_in_between(facts, recording.at_once, at.value, at.samples) & free
        unnamed |= between_gradients(facts, np.flatnonzero(unnamed & facts.forward)) & free
        found[_HIGH, may_be | unnamed] = 2 * usual
        if not has_windows(facts.study.snapshot):
            found[_DEGREE, unnamed] = 2 * usual


def _of_evaluations(found: IntArray, facts: Facts, free: BoolArray) -> None:
    """An evaluation below the optimizer's step need not grow with the batch, and does not if it has one of its own.

    A half of the batch, or another simple part, is taken for that.
    """
    rows = facts.below_optimizer & free
    found[_LOW, rows] = 0
    made = facts.forward & free
    share = share_of_batch(facts.study.snapshot.stacks, facts.stack[made], facts.size[made], rows[made])
    if not any(abs(share - part) <= NEARLY * part for part in (1, *PARTS)):
        found[_DEGREE, rows] = 0


def _of_length(
    found: IntArray, facts: Facts, recording: Recording, at: _At, divides: BoolArray, others: Sequence[IntArray]
) -> None:
    """What a length tells: what is nearly as long as what it divides, and what grows with its square or cube.

    So does the square of one of `others`: what convolutions leave of it, one token less, or a few more.
    """
    value, free = at.value, at.free
    near = _about_as_long(facts.size, free & divides & ~facts.padded, free & ~divides)
    found[_DEGREE, near] = 1
    if facts.widths:
        lengths = (value, *others)
        known = np.any([has_known_width(facts.size, one, at.samples, facts.widths) for one in lengths], axis=0)
        found[_LOW, free & ~known & (facts.size >= SMALL) & ~facts.padded] = 0
    square = of_two_places(facts, value, at.samples, free)
    for length in (value, *others):
        square |= _squares_of(facts, length, free)
    square |= of_softmaxes(facts, recording.at_once, value, at.samples) & free
    found[_DEGREE, square] = 2
    found[_HIGH, square | (free & _as_large_as_a_softmax(facts))] = 2
    found[_LOW, square & ~facts.attention] = 1
    made = Made(facts.size, facts.linear, facts.forward & facts.framed, facts.dropout, facts.sides)
    pairs, triangles = of_pairs(made, recording, value, at.samples)
    if pairs.any():
        # Those of pairs that attend along a row are of three places, though layers may make something as large.
        softmaxes = _softmaxes(facts)
        triangles |= softmaxes & pairs & of_triples(facts.size, value, at.samples)
        found[_HIGH, np.isin(facts.size, np.unique(facts.size[triangles])) & free] = TRIANGLES
    for rows, power in ((pairs & free, PAIRS), (triangles & free, TRIANGLES)):
        found[_DEGREE, rows] = power
        found[_HIGH, rows] = np.maximum(found[_HIGH, rows], power)
        found[_LOW, rows] = 1
    found[_CARRIED] |= near
    found[_CARRIED, may_be_of_pairs(made, recording, value, at.samples) & (found[_DEGREE] == 1)] = 0


@frozen(eq=False)
class _At:
    """At which value of a parameter each request was made, 1 where it is not known; at which batch; and which may vary.

    int64[requests] both, and bool[requests].
    """

    value: IntArray
    samples: IntArray
    free: BoolArray


def _has_images(facts: Facts, at: _At) -> bool:
    """Whether inputs beside a sequence are images: of three channels, square, and convolved."""
    places = facts.size // (np.maximum(at.samples, 1) * CHANNELS * FLOAT)
    sides = np.sqrt(places.astype(np.float64)).round().astype(np.int64)
    exact = sides * sides * CHANNELS * FLOAT * at.samples == facts.size
    return bool((facts.inputs & exact & (sides >= LEAST_SIDE)).any() and facts.convolved.any())


def _without_the_last(facts: Facts, at: _At) -> list[IntArray]:
    """int64[requests] a length: one token less, where a forward makes something large of it, as logits of the next."""
    length = at.value - 1
    each = np.maximum(at.samples, 1) * length
    made = at.free & facts.forward & (facts.size >= SMALL) & (length >= LEAST_TOKENS)
    made &= (facts.size % np.maximum(each, 1) == 0) & (facts.size % at.value != 0)
    return [np.where(length >= LEAST_TOKENS, length, 1)] if made.any() else []


def _squares_of(facts: Facts, tokens: IntArray, free: BoolArray) -> BoolArray:
    """Scores of so many tokens, whether or not a name tells them."""
    return np.asarray((tokens > 1) & (squares(facts, tokens, free) | unnamed_squares(facts, tokens, free)))


def _divided(size: IntArray, lengths: Sequence[IntArray]) -> BoolArray:
    """Which sizes one of `lengths` divides."""
    found = np.zeros(len(size), np.bool_)
    for length in lengths:
        found |= (length > 1) & (size % np.maximum(length, 1) == 0)
    return found


def _as_large_as_a_softmax(facts: Facts) -> BoolArray:
    """bool[requests]: what may be scores of attention, whatever its size says: a softmax makes some as large.

    Not a `log_softmax`, which is of a loss.
    """
    return np.isin(facts.size, np.unique(facts.size[_softmaxes(facts)]))


def _softmaxes(facts: Facts) -> BoolArray:
    """bool[requests]: what softmaxes make in a forward, if it is worth it."""
    return np.asarray(made_by_softmax(facts) & facts.forward & (facts.size >= SMALL))


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
    batch = batch_among(recording.shapes)
    if batch is None or not facts.inputs.any():
        return False
    samples = np.maximum(_values(recording, batch, len(side)), 1)
    return bool((facts.inputs & (side > HALVINGS) & (facts.size >= samples * side**3)).any())


def _beside_an_image(
    facts: Facts, recording: Recording, side: IntArray, tokens: IntArray
) -> tuple[BoolArray, BoolArray]:
    """What has a length that does not depend on the side, as text has, and what joins both.

    Of an input's factors, one that is odd and in no side of a weight, nor in that of the image or its tokens, is such a
    length. Without the shapes of weights, inputs have none but those that are embedded.
    """
    tensors = recording.study.snapshot.recorded.tensors
    widths = {width for one in tensors if one.category == "parameter" for width in one.shape or () if width > 1}
    batch = batch_among(recording.shapes)
    found, joined = np.zeros(len(side), np.bool_), np.zeros(len(side), np.bool_)
    if batch is None:
        return found, joined
    samples = np.maximum(_values(recording, batch, len(side)), 1)
    each = np.where(facts.size % samples == 0, facts.size // samples, 1)
    sides = np.unique(side[side > 1]).tolist()
    of_the_image = {*sides, *np.unique(tokens[tokens > 1]).tolist()}
    known = widths | of_the_image
    inputs = np.unique(each[facts.inputs & (side > 1)]).tolist() if widths else []
    inputs = [size for size in inputs if not _of_a_pyramid(size, sides)]
    # Not all sides of weights count: a table of places is as long as the text.
    texts = {_without(length, {*facts.vectors} | of_the_image) for length in lengths_of_texts(facts, samples)}
    kernels = [one.shape for one in tensors if one.category == "parameter" and one.shape]
    patches = {shape[-1] for shape in kernels if len(shape) == IMAGE_KERNEL}
    crops = {_without(tokens, known) for size in inputs for tokens in _tokens_of_crops(size, sides, patches)} - {1}
    for length in ({_without(size, known) for size in inputs} | texts | crops) - {1}:
        found |= (each % length == 0) & (side > 1)
        if length in crops:
            continue
        for power in range(HALVINGS):
            both = length + (side >> power) ** 2
            joined |= (each % both == 0) & (side >> power > 1) & ~found
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
    batch = batch_among(recording.shapes)
    return np.zeros(count, np.int64) if batch is None else _values(recording, batch, count)


def _values(recording: Recording, name: str, count: int) -> IntArray:
    """int64[requests]: the value of a parameter at which each was made; 0 where it is not known."""
    value = np.zeros(count, np.int64)
    for unit in recording.units:
        value[unit.begin : unit.end] = unit.shape.get(name, 0)
    return value


def recording_values(recording: Recording, name: str) -> BoolArray:
    """bool[requests]: which were made at a known value of a parameter."""
    return np.asarray(_values(recording, name, recording.program.requests) > 0)
