"""Scores between the tokens of a sequence, or the patches of an image, and others beside them: the square of all.

Two lengths or sides leave a sum of two products as possible as that square. The sum would have to begin below 0, and
the square is of whole numbers: so many patches that a side is cut into, and so many tokens beside them. Of a masked
autoencoder the patches that are kept count, a fourth of them say, which is as if they were twice as wide. Beside a text
there may be an image of a fixed size, or a prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from oomscope.analysis.plan.growth.polynomials import EXACT, Evidence, Model, Multiple, Polynomial, power, spread

MOST_BESIDE = 1024
"""Tokens beside the others: a class, a text, an image."""
NARROWEST, WIDEST = 4, 64
"""Sides of a patch, in pixels. That a whole number of still narrower ones fits is chance."""
BESIDE = (1, 0, 2, 5)
"""Tokens that stand for the whole image: one of a class, one of a teacher, registers."""
MOST_LESS = 64
"""Pixels that convolutions without padding take from a side."""
LINEAR, SQUARE = 1, 2
NEARLY = 1e-3
"""Tokens: sizes are whole bytes, which leaves so little open."""


def token_model(evidence: Evidence, varied: Sequence[int]) -> Model | None:
    """The model of scores at two lengths, or sides of images, or more; None where they are no such square."""
    for axis in varied:
        if (each := per_side(evidence, varied, axis)) is not None:
            degree = evidence.usual[axis]
            root = _root(sorted(each.items()), degree)
            if root is not None:
                return Model(_law(evidence, varied, axis, root, degree))
    return None


def beside(evidence: Evidence, varied: Sequence[int], axis: int) -> tuple[int, ...]:
    """The powers of all beside a side: a batch that varies is linear unless it is known better."""
    degree = [max(one, 1) if row in varied else one for row, one in enumerate(evidence.hint.degree)]
    others = [row for row in range(len(degree)) if row != axis]
    return spread([degree[row] for row in others], others, len(degree))


def per_side(evidence: Evidence, varied: Sequence[int], axis: int) -> dict[float, float] | None:
    """Bytes at each length or side and the first shape's other parameters; None where these do not tell them."""
    powers = beside(evidence, varied, axis)
    own, found = power(evidence.points[0], powers), dict[float, float]()
    for point, size in zip(evidence.points, evidence.sizes, strict=True):
        each = size * own / power(point, powers)
        if abs(found.setdefault(point[axis], each) - each) > EXACT:
            return None
    return found if len(found) > 1 else None


def _root(each: Sequence[tuple[float, float]], degree: int) -> tuple[float, float] | None:
    """A constant and the factor of a length, or a side's square, of which bytes are the square; None: no tokens."""
    (first, small), (last, large) = each[0], each[-1]
    factor = (sqrt(large) - sqrt(small)) / (last**degree - first**degree)
    constant = sqrt(small) - factor * first**degree
    if factor <= 0 or constant <= 0:
        return None
    if degree == SQUARE and (_is_of_a_side(each) or not _are_patches(constant / factor, each)):
        return None
    if degree == LINEAR and not _are_whole(constant / factor, each):
        return None
    fits = all(abs((constant + factor * side**degree) ** 2 - size) <= EXACT for side, size in each)
    return (constant, factor) if fits else None


def _are_whole(beside: float, each: Sequence[tuple[float, float]]) -> bool:
    """Whether a whole number of tokens stands beside the others, and each pair of all has a whole number of bytes."""
    count = round(beside)
    whole = all(round(size) % (round(length) + count) ** 2 == 0 for length, size in each)
    return whole and 1 <= count <= MOST_BESIDE and abs(beside - count) <= NEARLY * count


def _is_of_a_side(each: Sequence[tuple[float, float]]) -> bool:
    """Whether it is the square of what convolutions leave of a side: a few pixels less."""
    (first, small), (last, large) = each[0], each[-1]
    less = first - sqrt(small) * (last - first) / (sqrt(large) - sqrt(small))
    return abs(less - round(less)) <= NEARLY and abs(round(less)) <= MOST_LESS


def _are_patches(ratio: float, each: Sequence[tuple[float, float]]) -> bool:
    """Whether a whole number of tokens stands beside patches of a whole width, into which all sides are cut.

    Then each pair of tokens has a whole number of bytes.
    """
    for width in range(NARROWEST, WIDEST + 1):
        beside = round(ratio / width**2)
        if any(side % width for side, _ in each) or not 1 <= beside <= MOST_BESIDE:
            continue
        counts = [round(side / width) ** 2 + beside for side, _ in each]
        whole = all(round(size) % count**2 == 0 for count, (_, size) in zip(counts, each, strict=True))
        if whole and abs(ratio / width**2 - beside) <= NEARLY:
            return True
    return False


def _law(evidence: Evidence, varied: Sequence[int], axis: int, root: tuple[float, float], degree: int) -> Multiple:
    width = len(evidence.points[0])
    constant, factor = root
    terms = ((constant, (0,) * width), (factor, spread((degree,), [axis], width)))
    return Multiple(Polynomial(terms, squared=True), beside(evidence, varied, axis), evidence.points[0])
