"""Which requests have so many values for each place of an image, or of it halved again and again.

What has no number of channels that the program knows for any of those has other places: the words of a text, the
queries of a decoder. It need not grow with the image.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.requests.facts import SMALL, Facts
from oomscope.analysis.plan.requests.patches import made_of
from oomscope.analysis.plan.requests.scores import HALVINGS, LEAST_ODD
from oomscope.analysis.plan.requests.widths import LEAST, has_known_width
from oomscope.model import BoolArray, IntArray

LEAST_PATCH = 8
"""Of an image that is halved: the least side that counts."""
MOST_MORE = 3
"""By so many pixels a strided convolution without padding, or one with more of it, may miss a halved side."""
LEAST_RARE = 11
"""What is not among the factors of a few values of a place: colors, boxes, anchors."""


def divided_by_squares(size: IntArray, side: IntArray) -> BoolArray:
    """bool[requests]: which sizes the square of the side divides, or of a half of it, a quarter and so on."""
    found = np.zeros(len(size), np.bool_)
    for power in range(HALVINGS + 1):
        part = side >> power
        found |= (side % (1 << power) == 0) & (part > 1) & (size % np.maximum(part * part, 1) == 0)
    return found


def of_its_places(size: IntArray, side: IntArray, samples: IntArray) -> BoolArray:
    """bool[requests]: which are so many values for each place of the image, halved as rounded up or down."""
    found = np.zeros(len(size), np.bool_)
    for part in _halved(side):
        found |= made_of(size, np.where(part >= LEAST_PATCH, part * part, 0), samples)
    return found


def of_other_places(facts: Facts, side: IntArray, samples: IntArray, tokens: IntArray) -> BoolArray:
    """bool[requests]: which have no known number of channels for any places of the image.

    Args:
        facts: what is known of each request.
        side: int64[requests], at which each was made; 1: not known.
        samples: int64[requests], likewise the batch; 0: not known, taken for one.
        tokens: int64[requests], of the image, as of `patches.tokens_of`.
    """
    known = [one for one in facts.vectors if one >= LEAST]
    if not known:
        return np.zeros(len(side), np.bool_)
    found = made_of(facts.size, tokens, samples)
    for part in _halved(side):
        found |= (part > 1) & has_known_width(facts.size, part * part, samples, known, LEAST_RARE)
        for more in range(-MOST_MORE, MOST_MORE + 1):
            near = np.maximum(part + more, 1)
            rare = near // (near & -near) >= LEAST_ODD
            found |= rare & made_of(facts.size, near * near, samples)
    return np.asarray(~found & (side > 1) & (facts.size >= SMALL))


def _halved(side: IntArray) -> list[IntArray]:
    """int64[requests] each: the sides of an image halved again and again, as rounded up or down."""
    return [part for power in range(HALVINGS + 1) for part in (side >> power, -(-side // (1 << power)))]
