"""Polynomials in the parameters of a shape, and what is known of a request whose size may be one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oomscope.frozen import frozen

Point = tuple[float, ...]
Powers = tuple[int, ...]
EXACT = 8
"""Bytes by which a size that fits may be off: sizes are whole numbers of elements."""


@frozen
class Polynomial:
    """Σ factor · Π parameter^power, or the square of it.

    Attributes:
        terms: factor and powers.
        squared: whether the sum is squared.
    """

    terms: tuple[tuple[float, Powers], ...]
    squared: bool = False

    def at(self, point: Point) -> float:
        """Bytes at a point."""
        total = sum(factor * power(point, powers) for factor, powers in self.terms)
        return total * abs(total) if self.squared else total


class Law(Protocol):
    """Bytes as a function of the shape."""

    def at(self, point: Point, /) -> float:
        """Bytes at a point."""
        ...


@frozen
class Model:
    """The size of a request as a function of the shape.

    Attributes:
        likely: the prediction.
        others: what is possible as well.
        is_borne_out: whether recordings say so; else it rests on what the request is.
    """

    likely: Law
    others: tuple[Law, ...] = ()
    is_borne_out: bool = True

    def span(self, point: Point) -> tuple[int, int, int]:
        """Bytes at a point: likely, least, most."""
        likely = max(round(self.likely.at(point)), 1)
        values = [likely, *(max(round(one.at(point)), 1) for one in self.others)]
        return likely, min(values), max(values)


@frozen
class Hint:
    """Degrees that one recording alone suggests: likely, least and greatest for each parameter."""

    degree: Powers
    low: Powers
    high: Powers


@frozen
class Evidence:
    """All that is known of one request.

    Attributes:
        points: the shapes at which it was seen, its own first.
        sizes: its bytes there.
        hint: what it is.
        at_once: whether it is given back at once, as a workspace is.
        of_rows: whether an optimizer makes it of the rows of a sparse gradient.
        usual: the usual degree of each parameter among what grows with it.
        filled_by: bytes that a reduction would take which fills the card, on a larger card; else 0.
        block, full: bytes of one block of a reduction, and of as many as the card runs at once; 0: it is none.
        by_data: whether another step of the same shape made it in another size, as what is routed to an expert.
        nudged: whether that size is nearly the same.
        spread: how many times as much or as little its line makes in other steps of its shape.
    """

    points: tuple[Point, ...]
    sizes: tuple[int, ...]
    hint: Hint
    at_once: bool
    of_rows: bool
    usual: Powers
    filled_by: int = 0
    block: int = 0
    full: int = 0
    by_data: bool = False
    nudged: bool = False
    spread: float = 1.0


def with_the_rest(evidence: Evidence, varied: Sequence[int], found: Polynomial, *, borne_out: bool) -> Model:
    """What was found, times the powers of what no recording varies as the hint has them."""
    rest = [axis for axis in range(len(evidence.points[0])) if axis not in varied]
    likely = times(found, evidence, rest, evidence.hint.degree)
    others = _extended(evidence, varied, found)
    certain = not others and (borne_out or evidence.hint.low == evidence.hint.high)
    return Model(likely, others, is_borne_out=certain)


def _extended(evidence: Evidence, varied: Sequence[int], found: Polynomial) -> tuple[Law, ...]:
    rest = [axis for axis in range(len(evidence.points[0])) if axis not in varied]
    hint = evidence.hint
    ends = {tuple(ends[axis] for axis in rest) for ends in (hint.low, hint.high)} - {
        tuple(hint.degree[axis] for axis in rest)
    }
    return tuple(times(found, evidence, rest, spread(end, rest, len(hint.degree))) for end in sorted(ends))


@frozen
class Multiple:
    """A law times a product of powers, which is 1 at `origin`."""

    law: Law
    powers: Powers
    origin: Point

    def at(self, point: Point) -> float:
        """Bytes at a point."""
        return self.law.at(point) * power(point, self.powers) / power(self.origin, self.powers)


def times(one: Polynomial, evidence: Evidence, rest: Sequence[int], powers: Powers) -> Law:
    """`one` times what is not varied, relative to where it was seen; a constant beside another term stays."""
    extra = tuple(powers[axis] if axis in rest else 0 for axis in range(len(powers)))
    if not any(extra):
        return one
    if one.squared:
        return Multiple(one, extra, evidence.points[0])
    scale = power(evidence.points[0], extra)
    terms = tuple(
        (factor / scale, tuple(own + more for own, more in zip(own_powers, extra, strict=True)))
        if any(own_powers) or len(one.terms) == 1
        else (factor, own_powers)
        for factor, own_powers in one.terms
    )
    return Polynomial(terms)


def proportional(evidence: Evidence, row: int, degree: Powers | None = None) -> Polynomial:
    """What was seen at one shape, in proportion to what the request is, or to a product of other degrees."""
    point, size, powers = evidence.points[row], evidence.sizes[row], degree or evidence.hint.degree
    return Polynomial(((factor_of(point, size, powers), powers),))


def multiplied(one: Polynomial, by: float) -> Polynomial:
    """So many times a polynomial that is not squared."""
    return Polynomial(tuple((factor * by, powers) for factor, powers in one.terms))


def factor_of(point: Point, size: int, powers: Powers) -> float:
    """The factor of a product of powers that gives a size at a point."""
    return size / power(point, powers)


def differ_in(one: Point, other: Point) -> list[int]:
    """The parameters that are other at another shape."""
    return [axis for axis in range(len(one)) if one[axis] != other[axis]]


def power(point: Point, powers: Powers) -> float:
    """A product of powers at a point."""
    value = 1.0
    for base, exponent in zip(point, powers, strict=True):
        value *= base**exponent
    return value


def spread(chosen: Sequence[int], axes: Sequence[int], width: int) -> Powers:
    """Powers of some axes as powers of all, 0 for the others."""
    powers = [0] * width
    for axis, exponent in zip(axes, chosen, strict=True):
        powers[axis] = exponent
    return tuple(powers)
