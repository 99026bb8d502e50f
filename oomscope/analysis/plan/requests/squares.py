"""Which requests grow with the square of the tokens: the scores of attention, and masks beside them."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.requests.calls import module_of, path_of
from oomscope.analysis.plan.requests.facts import Facts
from oomscope.analysis.plan.requests.scores import (
    HALVINGS,
    LEAST_TOKENS,
    PROJECTIONS,
    RARE,
    between_projections,
    odd_part,
    pixels,
    softmaxes_by_name,
    written_out,
)
from oomscope.analysis.plan.requests.windows import has_windows
from oomscope.model import BoolArray, IntArray

LEAST_WEIGHT = 64 << 10
"""Bytes of a matrix that is a layer's weight: what is smaller may be a vector."""
MASK = 4
"""Times as many bytes has a float32 as a truth value."""
_ITEM_SIZES, _FLOATS = (4, 2, 8, 1), (4, 2)


def squares(facts: Facts, value: IntArray, free: BoolArray) -> BoolArray:
    """Scores: made in attention, divided by the square of the length; and what the backward makes of that size.

    A tensor that some other line makes of the same size, without attention, is none.
    """
    divides = free & (facts.size % np.maximum(value * value, 1) == 0) & (value > 1) & (facts.size >= value * value)
    scores = divides & facts.attention & facts.framed & ~facts.projects
    elsewhere = np.unique(facts.size[free & facts.framed & ~facts.attention])
    sizes = np.setdiff1d(np.unique(facts.size[scores]), elsewhere)
    found: BoolArray = divides & np.isin(facts.size, sizes)
    return found


def unnamed_squares(facts: Facts, value: IntArray, free: BoolArray) -> BoolArray:
    """Scores that are told by their sizes alone, the masks beside them, and what the backward makes of their size."""
    stacks = facts.study.snapshot.stacks
    found = np.zeros(len(value), np.bool_)
    for tokens in np.unique(value[free & (value > 1)]).tolist():
        here = facts.forward & (value == tokens)
        known = {one: path_of(stacks[one]) for one in np.unique(facts.stack[here]).tolist()}
        rows = np.flatnonzero(here & ~facts.projects)
        softmax = softmaxes_by_name(stacks, facts.stack)
        scores = written_out(facts.size, facts.stack, rows, facts.linear, known, [tokens], 1, softmax)
        is_rare = odd_part(tokens) >= RARE
        projected = between_projections(
            facts.size, facts.stack, np.flatnonzero(here), facts.linear, [tokens], is_common=not is_rare
        )
        lines = np.unique(facts.stack[scores])
        others = np.unique(facts.size[here & ~np.isin(facts.stack, lines)])
        sizes = np.setdiff1d(np.unique(facts.size[scores]), others)
        modules = {module_of(known[one]) for one in lines.tolist()}
        inside = np.array([one for one in known if module_of(known[one]) in modules], np.int64)
        beside = [*(tokens * tokens * item for item in _ITEM_SIZES), *_places(sizes, tokens)]
        # A line that makes scores may mask them, and so does a dropout.
        masked = (facts.dropout | np.isin(facts.stack, lines)) & np.isin(facts.size, sizes // MASK)
        masks = here & np.isin(facts.stack, inside) & (np.isin(facts.size, beside) | masked)
        sizes = np.union1d(sizes, np.setdiff1d(np.unique(facts.size[masks]), others))
        found |= masks | ((value == tokens) & free & np.isin(facts.size, sizes)) | between_gradients(facts, projected)
        found[projected] = True
    return found & free


def of_two_places(facts: Facts, length: IntArray, samples: IntArray, free: BoolArray) -> BoolArray:
    """A number for each pair of places and nothing beside, as distances between points: no layer makes its size.

    Nor does a dropout alone, whose masks may be of anything four times as large.

    Args:
        facts: what is known of each request.
        length: int64[requests], at which each was made; 0: not known.
        samples: int64[requests], likewise the batch; 0: not known, taken for one.
        free: bool[requests], which may depend on the length.
    """
    exact = np.zeros(len(length), np.bool_)
    for item in _FLOATS:
        exact |= facts.size == np.maximum(samples, 1) * length * length * item
    exact &= free & (length >= LEAST_TOKENS)
    made = facts.forward & ~facts.dropout
    sizes = np.setdiff1d(np.unique(facts.size[made & exact]), np.unique(facts.size[made & facts.layered]))
    masks = np.zeros(len(length), np.bool_)
    masks[:-1] = facts.dropout[:-1] & (facts.stack[1:] == facts.stack[:-1]) & (facts.size[1:] == MASK * facts.size[:-1])
    return np.asarray(exact & np.isin(facts.size, sizes) & ~masks)


def squares_of_images(facts: Facts, side: IntArray, free: BoolArray) -> BoolArray:
    """Scores by which the pixels of an image attend to one another, and what the backward makes of their size.

    Within windows they do not grow with the square of the pixels.
    """
    found = np.zeros(len(side), np.bool_)
    if has_windows(facts.study.snapshot):
        return found
    for one in np.unique(side[free & (side > 1)]).tolist():
        here = facts.forward & (side == one)
        scores = between_projections(facts.size, facts.stack, np.flatnonzero(here), facts.linear, pixels([one]))
        others = facts.size[here & ~np.isin(facts.stack, np.unique(facts.stack[scores]))]
        sizes = np.setdiff1d(np.unique(facts.size[scores]), others)
        found |= (side == one) & np.isin(facts.size, np.union1d(sizes, np.setdiff1d(sizes // MASK, others)))
        found[scores] = True
        found |= between_gradients(facts, scores)
    return found & free


def between_gradients(facts: Facts, scores: IntArray) -> BoolArray:
    """bool[requests]: what a backward makes of the size of scores between the gradients of an attention's own weights.

    Those are of one size, or three times it where queries, keys and values are one layer. Hidden features of another
    layer may be as large as scores, but its weights are not as large as these.
    """
    found = np.zeros(len(facts.size), np.bool_)
    rows = np.flatnonzero(facts.gradient & facts.backward & (facts.size >= LEAST_WEIGHT))
    sizes = np.unique(facts.size[scores])
    for before, after in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
        if facts.size[after] in (facts.size[before], PROJECTIONS * facts.size[before]):
            inside = slice(before, after)
            found[inside] = facts.backward[inside] & np.isin(facts.size[inside], sizes)
    return found


def _places(scores: IntArray, tokens: int) -> list[int]:
    """Bytes of products with relative places, of which there are 2n − 1.

    A program may work on a part of the tokens that it is told, as after strided convolutions.
    """
    lengths = [tokens >> halvings for halvings in range(HALVINGS) if tokens >> halvings > 1]
    return [size * (2 * length - 1) // length for size in scores.tolist() for length in lengths]
