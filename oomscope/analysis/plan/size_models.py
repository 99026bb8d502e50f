"""How the size of each request follows from the shape: a polynomial in the parameters, the simplest that fits.

Tried in this order: one product of powers (``batch · seq``), which two recordings bear out where the sizes have exactly
that ratio; a constant with one such product (``batch · (seq − 1)``); the square of a shifted side, as convolutions
leave it. What no recording varies is taken from what the request is (`hints`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

HIGHEST = 3
"""The highest degree in one parameter: what is cubed is a volume. Squares of sums have twice that."""
_EXACT = 8
"""Bytes by which a size that fits may be off: sizes are whole numbers of elements."""

LARGE = 1 << 20
"""Bytes of a request that is worth a doubt."""
ROUNDED = 0.005
"""The share by which the square of a side may miss a size: strides and windows round sides down."""

STEADY = 0.001
"""Of a workspace: so much below a pure proportion is still one, for it is padded."""

Point = tuple[float, ...]
Powers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
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
        total = sum(factor * _power(point, powers) for factor, powers in self.terms)
        return total * abs(total) if self.squared else total


@dataclass(frozen=True, slots=True)
class Model:
    """The size of a request as a function of the shape.

    Attributes:
        likely: the prediction.
        others: what is possible as well.
        is_borne_out: whether recordings say so; else it rests on what the request is.
    """

    likely: Polynomial
    others: tuple[Polynomial, ...] = ()
    is_borne_out: bool = True

    def span(self, point: Point) -> tuple[int, int, int]:
        """Bytes at a point: likely, least, most."""
        likely = max(round(self.likely.at(point)), 1)
        values = [likely, *(max(round(one.at(point)), 1) for one in self.others)]
        return likely, min(values), max(values)


@dataclass(frozen=True, slots=True)
class Hint:
    """Degrees that one recording alone suggests: likely, least and greatest for each parameter."""

    degree: Powers
    low: Powers
    high: Powers


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one request.

    Attributes:
        points: the shapes at which it was seen, its own first.
        sizes: its bytes there.
        hint: what it is.
        at_once: whether it is given back at once, as a workspace is.
        usual: the usual degree of each parameter among what grows with it.
    """

    points: tuple[Point, ...]
    sizes: tuple[int, ...]
    hint: Hint
    at_once: bool
    usual: Powers


def fit(evidence: Evidence) -> Model:
    """The simplest model that fits all sizes; where none does, the nearest size and how far the others are from it."""
    points, sizes = evidence.points, evidence.sizes
    varied = [axis for axis in range(len(points[0])) if len({point[axis] for point in points}) > 1]
    if not varied:
        return _from_hint(evidence)
    fitting = _monomials(points, sizes, varied)
    if fitting:
        return _product(evidence, varied, fitting)
    if evidence.at_once:
        return _steady_workspace(evidence, varied) or _workspace(evidence)
    return _sums(evidence, varied)


def _monomials(points: Sequence[Point], sizes: Sequence[int], varied: Sequence[int]) -> list[Powers]:
    """The powers of every product that all sizes are proportional to, the lowest first."""
    choices = sorted(product(range(HIGHEST + 2), repeat=len(varied)), key=lambda powers: (sum(powers), powers))
    spread = (_spread(chosen, varied, len(points[0])) for chosen in choices)
    return [powers for powers in spread if _fits([(_factor(points[0], sizes[0], powers), powers)], points, sizes)]


def _product(evidence: Evidence, varied: Sequence[int], fitting: Sequence[Powers]) -> Model:
    """One of the products that fit. Where the shapes cannot tell them apart, what the request is decides."""
    hint = evidence.hint

    def strangeness(powers: Powers) -> int:
        return sum(abs(powers[axis] - hint.degree[axis]) for axis in varied)

    def found(powers: Powers) -> Polynomial:
        return Polynomial(((_factor(evidence.points[0], evidence.sizes[0], powers), powers),))

    chosen = min(fitting, key=strangeness)
    model = _with_the_rest(evidence, varied, found(chosen), borne_out=True)
    if evidence.sizes[0] >= LARGE and any(chosen[axis] < hint.low[axis] for axis in varied):
        # A kernel may round up what it takes: it need not stay at that where there is less to do.
        model = Model(model.likely, (*model.others, _proportional(evidence, 0)), is_borne_out=False)
    possible = [
        powers
        for powers in fitting
        if powers != chosen and all(hint.low[axis] <= powers[axis] <= hint.high[axis] for axis in varied)
    ]
    if not possible:
        return model
    return Model(model.likely, (*model.others, *map(found, possible)), is_borne_out=False)


def _sums(evidence: Evidence, varied: Sequence[int]) -> Model:
    """Two products, one a factor of the other, as ``batch · seq − batch``; or the square of a shifted side."""
    points, sizes = evidence.points, evidence.sizes
    fitting = [found for pair in _pairs(varied, len(points[0])) if (found := _two_terms(points, sizes, *pair))]
    if len(varied) == 1:
        if len(points) > 2 and not fitting:
            fitting = _quadratic(points, sizes, varied[0])
        if (not fitting or len(points) == 2) and evidence.usual[varied[0]] == 2:
            fitting += _squares(points, sizes, varied[0])
    if not fitting:
        return _workspace(evidence)
    degree = _likely_degrees(evidence, varied)

    def strangeness(one: Polynomial) -> tuple[int, float]:
        top, times = one.terms[-1][1], 2 if one.squared else 1
        return sum(abs(times * top[axis] - degree[axis]) for axis in varied), _share_of_first(one, points[0])

    likely = min(fitting, key=strangeness)
    if len(points) > 2:
        return _with_the_rest(evidence, varied, likely, borne_out=True)
    if sizes[0] >= LARGE and _share_of_first(likely, points[0]) > ROUNDED:
        fitting = [*fitting, _proportional(evidence, 0)]
    # Two sizes bear out any of them: those of no higher degree are possible too.
    least = strangeness(likely)[0]
    others = tuple(one for one in fitting if one is not likely and strangeness(one)[0] == least)
    model = _with_the_rest(evidence, varied, likely, borne_out=True)
    rest = [axis for axis in range(len(points[0])) if axis not in varied]
    scaled = tuple(_times(one, evidence, rest, evidence.hint.degree) for one in others)
    return Model(model.likely, (*scaled, *model.others), is_borne_out=not others and model.is_borne_out)


def _likely_degrees(evidence: Evidence, varied: Sequence[int]) -> dict[int, int]:
    """The degree in each parameter: by how fast the size grows where only that one changes, else by what it is."""
    hint, found = evidence.hint, {}
    for axis in varied:
        alone = [row for row in range(1, len(evidence.points)) if _differs_in(evidence, row) == [axis]]
        if alone:
            found[axis] = _pace(evidence, max(alone, key=lambda row: abs(_step(evidence, row, axis))), axis)
        else:
            found[axis] = max(hint.degree[axis], evidence.usual[axis])
    return found


def _differs_in(evidence: Evidence, row: int) -> list[int]:
    """The parameters that are other at another shape."""
    one, other = evidence.points[0], evidence.points[row]
    return [axis for axis in range(len(one)) if one[axis] != other[axis]]


def _step(evidence: Evidence, row: int, axis: int) -> float:
    return float(np.log(evidence.points[row][axis] / evidence.points[0][axis]))


def _pace(evidence: Evidence, row: int, axis: int) -> int:
    """The power of a parameter that a size grows with to another shape."""
    pace = np.log(evidence.sizes[row] / evidence.sizes[0]) / _step(evidence, row, axis)
    return int(np.clip(np.round(pace), 1, 2 * HIGHEST))


def _share_of_first(one: Polynomial, point: Point) -> float:
    """How large the smaller of two terms is beside the other: a tensor is nearly a product."""
    first, last = (abs(factor * _power(point, powers)) for factor, powers in (one.terms[0], one.terms[-1]))
    return first / max(last, 1.0)


def _pairs(varied: Sequence[int], width: int) -> list[tuple[Powers, Powers]]:
    """Pairs of products of which the first is a factor of the second."""
    highest = HIGHEST if len(varied) == 1 else HIGHEST - 1
    choices = [_spread(chosen, varied, width) for chosen in product(range(highest + 1), repeat=len(varied))]
    return [
        (one, other)
        for one in choices
        for other in choices
        if one != other and all(low <= high for low, high in zip(one, other, strict=True))
    ]


def _two_terms(points: Sequence[Point], sizes: Sequence[int], first: Powers, second: Powers) -> Polynomial | None:
    """``a · first + b · second``; None where the sizes are not such a sum, or it would fall."""
    table = np.array([[_power(point, first), _power(point, second)] for point in points])
    scale = table[0]
    factors, *_ = np.linalg.lstsq(table / scale, np.array(sizes, np.float64), rcond=None)
    if not np.all(np.isfinite(factors)) or factors[1] <= 0 or np.linalg.matrix_rank(table / scale, tol=1e-9) < 2:
        return None
    a, b = (factors / scale).tolist()
    found = Polynomial(((a, first), (b, second)))
    return found if _fits(found.terms, points, sizes) else None


def _squares(points: Sequence[Point], sizes: Sequence[int], axis: int) -> list[Polynomial]:
    """``(a + b · side)²`` and ``(a + b · side²)²`` through the first and the last size.

    They count where they are within half a percent of the others. The first is what convolutions leave of a side, the
    second are scores between the patches of an image.
    """
    roots = [float(np.sqrt(size)) for size in sizes]
    width, found = len(points[0]), []
    for power in (1, 2):
        begin, end = points[0][axis] ** power, points[-1][axis] ** power
        slope = (roots[-1] - roots[0]) / (end - begin)
        terms = ((roots[0] - slope * begin, (0,) * width), (slope, _spread((power,), [axis], width)))
        one = Polynomial(terms, squared=True)
        if slope > 0 and all(abs(one.at(at) - size) <= ROUNDED * size for at, size in zip(points, sizes, strict=True)):
            found.append(one)
    return found


def _quadratic(points: Sequence[Point], sizes: Sequence[int], axis: int) -> list[Polynomial]:
    """The parabola through three sizes, if it does not fall."""
    width = len(points[0])
    values = np.array([point[axis] for point in points])
    if len(set(values.tolist())) < 3:
        return []
    table = np.stack([np.ones_like(values), values, values**2], axis=1)
    factors, *_ = np.linalg.lstsq(table, np.array(sizes, np.float64), rcond=None)
    found = Polynomial(tuple((float(factor), _spread((power,), [axis], width)) for power, factor in enumerate(factors)))
    return [found] if factors[2] >= 0 and factors[1] + 2 * factors[2] * values.max() > 0 else []


def _steady_workspace(evidence: Evidence, varied: Sequence[int]) -> Model | None:
    """A workspace of one algorithm: a constant and a part in proportion, neither negative; None where it is not.

    One whose algorithm changed may lie on such a line by chance, but then others do not.
    """
    points, sizes, width = evidence.points, evidence.sizes, len(evidence.points[0])
    constant = _spread((), (), width)
    degrees = [(1,) if len(varied) == 1 else (1, 2, 3) for _ in varied]
    for chosen in product(*degrees):
        found = _line(points, sizes, _spread(chosen, varied, width))
        if found is not None:
            terms = ((found[0], constant), (found[1], _spread(chosen, varied, width)))
            model = _with_the_rest(evidence, varied, Polynomial(terms), borne_out=True)
            return Model(model.likely, model.others)
    return None


def _line(points: Sequence[Point], sizes: Sequence[int], powers: Powers) -> tuple[float, float] | None:
    """A constant and a factor of a product, neither negative, that give all sizes but for what aligns them."""
    values = np.array([_power(point, powers) for point in points])
    if len(set(values.tolist())) < 2:
        return None
    factor, constant = np.polyfit(values, np.array(sizes, np.float64), 1)
    missed = np.abs(constant + factor * values - np.array(sizes, np.float64))
    steady = np.all(missed <= np.maximum(STEADY * np.array(sizes, np.float64), _EXACT))
    return (float(constant), float(factor)) if steady and factor > 0 and constant >= -STEADY * sizes[0] else None


def _workspace(evidence: Evidence) -> Model:
    """A kernel's workspace whose algorithm changed: the own size, in proportion, or any that was seen."""
    likely = _three_parts(evidence) or _proportional(evidence, 0)
    others = [_proportional(evidence, row) for row in range(1, len(evidence.points))]
    return Model(likely, tuple(others), is_borne_out=False)


def _three_parts(evidence: Evidence) -> Polynomial | None:
    """A constant, a part in proportion to one parameter and one to the product of two: weights, states, activations.

    As the reserve of a recurrent layer is. Three shapes tell them, and none may be negative.
    """
    points, sizes, width = evidence.points, evidence.sizes, len(evidence.points[0])
    varied = [axis for axis in range(width) if len({point[axis] for point in points}) > 1]
    if len(varied) != 2 or len(points) != 3:
        return None
    for axis in varied:
        powers = [(0,) * width, _spread((1,), [axis], width), _spread((1, 1), varied, width)]
        table = np.array([[_power(point, one) for one in powers] for point in points])
        if np.linalg.matrix_rank(table / table[0], tol=1e-9) == len(powers):
            factors = np.linalg.solve(table / table[0], np.array(sizes, np.float64)) / table[0]
            if (factors >= 0).all():
                return Polynomial(tuple(zip(factors.tolist(), powers, strict=True)))
    return None


def _proportional(evidence: Evidence, row: int) -> Polynomial:
    point, size, powers = evidence.points[row], evidence.sizes[row], evidence.hint.degree
    return Polynomial(((_factor(point, size, powers), powers),))


def _from_hint(evidence: Evidence) -> Model:
    own = Polynomial(((float(evidence.sizes[0]), (0,) * len(evidence.points[0])),))
    return _with_the_rest(evidence, (), own, borne_out=False)


def _with_the_rest(evidence: Evidence, varied: Sequence[int], found: Polynomial, *, borne_out: bool) -> Model:
    """What was found, times the powers of what no recording varies as the hint has them."""
    rest = [axis for axis in range(len(evidence.points[0])) if axis not in varied]
    likely = _times(found, evidence, rest, evidence.hint.degree)
    others = _extended(evidence, varied, found)
    certain = not others and (borne_out or evidence.hint.low == evidence.hint.high)
    return Model(likely, others, is_borne_out=certain)


def _extended(evidence: Evidence, varied: Sequence[int], found: Polynomial) -> tuple[Polynomial, ...]:
    rest = [axis for axis in range(len(evidence.points[0])) if axis not in varied]
    hint = evidence.hint
    ends = {tuple(ends[axis] for axis in rest) for ends in (hint.low, hint.high)} - {
        tuple(hint.degree[axis] for axis in rest)
    }
    return tuple(_times(found, evidence, rest, _spread(end, rest, len(hint.degree))) for end in sorted(ends))


def _times(one: Polynomial, evidence: Evidence, rest: Sequence[int], powers: Powers) -> Polynomial:
    """`one` times what is not varied, relative to where it was seen; a constant beside another term stays."""
    extra = tuple(powers[axis] if axis in rest else 0 for axis in range(len(powers)))
    if not any(extra) or one.squared:
        return one
    scale = _power(evidence.points[0], extra)
    terms = tuple(
        (factor / scale, tuple(own + more for own, more in zip(own_powers, extra, strict=True)))
        if any(own_powers) or len(one.terms) == 1
        else (factor, own_powers)
        for factor, own_powers in one.terms
    )
    return Polynomial(terms)


def _fits(terms: Sequence[tuple[float, Powers]], points: Sequence[Point], sizes: Sequence[int]) -> bool:
    found = Polynomial(tuple(terms))
    return all(abs(found.at(point) - size) <= _EXACT for point, size in zip(points, sizes, strict=True))


def _factor(point: Point, size: int, powers: Powers) -> float:
    return size / _power(point, powers)


def _power(point: Point, powers: Powers) -> float:
    value = 1.0
    for base, power in zip(point, powers, strict=True):
        value *= base**power
    return value


def _spread(chosen: Sequence[int], axes: Sequence[int], width: int) -> Powers:
    powers = [0] * width
    for axis, power in zip(axes, chosen, strict=True):
        powers[axis] = power
    return tuple(powers)
