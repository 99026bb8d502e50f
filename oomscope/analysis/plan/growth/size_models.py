"""How the size of each request follows from the shape: a polynomial in the parameters, the simplest that fits.

Tried in this order: one product of powers (``batch · seq``), which two recordings bear out where the sizes have exactly
that ratio; a constant with one such product (``batch · (seq − 1)``); the square of a shifted side, as convolutions
leave it. What no recording varies is taken from what the request is (`hints`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from oomscope.analysis.plan.growth.crop_models import crop_model
from oomscope.analysis.plan.growth.divided import divisor_of, of_parts, of_wholes
from oomscope.analysis.plan.growth.polynomials import (
    EXACT,
    Evidence,
    Model,
    Point,
    Polynomial,
    Powers,
    differ_in,
    factor_of,
    multiplied,
    power,
    proportional,
    spread,
    times,
    with_the_rest,
)
from oomscope.analysis.plan.growth.reductions import capped, reduction_model, up_to_full
from oomscope.analysis.plan.growth.row_models import row_model
from oomscope.analysis.plan.growth.token_models import token_model
from oomscope.analysis.plan.growth.workspace_models import changed, nearest_degree, workspace_model

HIGHEST = 3
"""The highest degree in one parameter: what is cubed is a volume. Squares of sums have twice that."""

LARGE = 1 << 20
"""Bytes of a request that is worth a doubt."""
A_LITTLE = 0.01
"""Of a size: what a sum begins below 0, as where a token is left out."""
ROUNDED = 0.005
"""The share by which the square of a side may miss a size: strides and windows round sides down."""


def fit(evidence: Evidence) -> Model:
    """The simplest model that fits all sizes; where none does, the nearest size and how far the others are from it."""
    points, sizes = evidence.points, evidence.sizes
    varied = [axis for axis in range(len(points[0])) if len({point[axis] for point in points}) > 1]
    if evidence.filled_by and len(set(sizes)) == 1:
        return reduction_model(evidence)
    if not varied:
        return _from_hint(evidence)
    if evidence.by_data and not (evidence.at_once or evidence.of_rows):
        return _share(evidence, varied)
    if (divided := divisor_of(evidence, varied)) is not None:
        return of_wholes(fit(of_parts(evidence, *divided)), *divided)
    if (full := up_to_full(evidence)) is not None:
        return full
    every = _monomials(points, sizes, varied)
    fitting = [powers for powers in every if not _by_chance(evidence, powers, varied)]
    if fitting:
        return _product(evidence, varied, fitting)
    if every:
        return changed(evidence)
    if evidence.of_rows and (rows := row_model(evidence, varied)) is not None:
        return rows
    if (tokens := token_model(evidence, varied)) is not None:
        return tokens
    if evidence.at_once:
        return workspace_model(evidence, varied)
    if (crops := crop_model(evidence, varied)) is not None:
        return crops
    return _sums(evidence, varied)


def _share(evidence: Evidence, varied: Sequence[int]) -> Model:
    """What the data decides, such as the tokens of one expert: all in proportion keep their sum, which the shape does.

    Chance moves each far, so that its sizes at other shapes do not even tell the degree, unless all steps have nearly
    the same.
    """
    degree = tuple(max(hint, int(axis in varied)) for axis, hint in enumerate(evidence.hint.degree))
    told = (nearest_degree(evidence) if evidence.nudged else None) or degree
    likely = proportional(evidence, 0, tuple(map(max, told, degree)))
    return Model(likely, _ends(likely, evidence), is_borne_out=False)


def _ends(likely: Polynomial, evidence: Evidence) -> tuple[Polynomial, Polynomial]:
    """As little and as much as the data makes of it in other steps."""
    return multiplied(likely, 1 / evidence.spread), multiplied(likely, evidence.spread)


def _monomials(points: Sequence[Point], sizes: Sequence[int], varied: Sequence[int]) -> list[Powers]:
    """The powers of every product that all sizes are proportional to, the lowest first."""
    choices = sorted(product(range(HIGHEST + 2), repeat=len(varied)), key=lambda powers: (sum(powers), powers))
    every = (spread(chosen, varied, len(points[0])) for chosen in choices)
    return [powers for powers in every if _fits([(factor_of(points[0], sizes[0], powers), powers)], points, sizes)]


def _by_chance(evidence: Evidence, powers: Powers, varied: Sequence[int]) -> bool:
    """Whether what never changed alone has a power far above what it is: something else was made at that shape."""
    together = _only_together(evidence, varied)
    return any(powers[axis] > evidence.hint.high[axis] + 1 for axis in together)


def _only_together(evidence: Evidence, varied: Sequence[int]) -> list[int]:
    """The parameters that no recording changes alone, so that a single size tells how two of them work."""
    alone = [differ_in(evidence.points[0], evidence.points[row]) for row in range(1, len(evidence.points))]
    return [axis for axis in varied if [axis] not in alone]


def _product(evidence: Evidence, varied: Sequence[int], fitting: Sequence[Powers]) -> Model:
    """One of the products that fit. Where the shapes cannot tell them apart, what the request is decides."""
    hint = evidence.hint

    def strangeness(powers: Powers) -> int:
        return sum(abs(powers[axis] - hint.degree[axis]) for axis in varied)

    def found(powers: Powers) -> Polynomial:
        return Polynomial(((factor_of(evidence.points[0], evidence.sizes[0], powers), powers),))

    chosen = min(fitting, key=strangeness)
    model = with_the_rest(evidence, varied, found(chosen), borne_out=True)
    if evidence.sizes[0] >= LARGE and any(chosen[axis] < hint.low[axis] for axis in varied):
        # A kernel may round up what it takes: it need not stay at that where there is less to do.
        model = Model(model.likely, (*model.others, proportional(evidence, 0, hint.low)), is_borne_out=False)
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
        return changed(evidence)
    degree = _likely_degrees(evidence, varied)

    def strangeness(one: Polynomial) -> tuple[int, float]:
        top, times = one.terms[-1][1], 2 if one.squared else 1
        return sum(abs(times * top[axis] - degree[axis]) for axis in varied), _share_of_first(one, points[0])

    likely = min(fitting, key=strangeness)
    if len(points) > 2:
        model = with_the_rest(evidence, varied, likely, borne_out=True)
        mostly_fixed = sizes[0] >= LARGE and _share_of_first(likely, points[0]) > 1
        if (mostly_fixed and _only_together(evidence, varied)) or _falls_below(likely, points, varied):
            others = (proportional(evidence, 0), *_slower(evidence, varied))
            model = Model(model.likely, (*model.others, *others), is_borne_out=False)
        return model
    if sizes[0] >= LARGE and _share_of_first(likely, points[0]) > ROUNDED:
        fitting = [*fitting, proportional(evidence, 0)]
    # Two sizes bear out any of them: those of no higher degree are possible too.
    least = strangeness(likely)[0]
    others = tuple(one for one in fitting if one is not likely and strangeness(one)[0] == least)
    model = with_the_rest(evidence, varied, likely, borne_out=True)
    rest = [axis for axis in range(len(points[0])) if axis not in varied]
    scaled = tuple(times(one, evidence, rest, evidence.hint.degree) for one in others)
    return Model(model.likely, (*scaled, *model.others), is_borne_out=not others and model.is_borne_out)


def _falls_below(one: Polynomial, points: Sequence[Point], varied: Sequence[int]) -> bool:
    """Whether a sum of two products, which two values of a side or a length tell, would be 0 before that is.

    What is cut into patches or windows, or rounded otherwise, looks so between two sides, and does not go on so.
    """
    (least, low), (_, high) = one.terms[0], one.terms[-1]
    two = any(low[axis] < high[axis] and len({point[axis] for point in points}) == 2 for axis in varied)
    return two and not one.squared and least < 0 and _share_of_first(one, points[0]) > A_LITTLE


def _slower(evidence: Evidence, varied: Sequence[int]) -> list[Polynomial]:
    """What grows less than it should with what is counted in squares, as a part of it may stay."""
    degree = evidence.hint.degree
    less = tuple(one - 1 if row in varied and one > 1 else one for row, one in enumerate(degree))
    return [] if less == degree else [proportional(evidence, 0, less)]


def _likely_degrees(evidence: Evidence, varied: Sequence[int]) -> dict[int, int]:
    """The degree in each parameter: by how fast the size grows where only that one changes, else by what it is.

    A part that does not grow, as text beside an image, makes the whole grow more slowly than what it is would.
    """
    hint, found = evidence.hint, {}
    for axis in varied:
        alone = [
            row
            for row in range(1, len(evidence.points))
            if differ_in(evidence.points[0], evidence.points[row]) == [axis]
        ]
        if alone:
            pace = _pace(evidence, max(alone, key=lambda row: abs(_step(evidence, row, axis))), axis)
            found[axis] = max(pace, hint.degree[axis])
        else:
            found[axis] = max(hint.degree[axis], evidence.usual[axis])
    return found


def _step(evidence: Evidence, row: int, axis: int) -> float:
    return float(np.log(evidence.points[row][axis] / evidence.points[0][axis]))


def _pace(evidence: Evidence, row: int, axis: int) -> int:
    """The power of a parameter that a size grows with to another shape."""
    pace = np.log(evidence.sizes[row] / evidence.sizes[0]) / _step(evidence, row, axis)
    return int(np.clip(np.round(pace), 1, 2 * HIGHEST))


def _share_of_first(one: Polynomial, point: Point) -> float:
    """How large the smaller of two terms is beside the other: a tensor is nearly a product."""
    first, last = (abs(factor * power(point, powers)) for factor, powers in (one.terms[0], one.terms[-1]))
    return first / max(last, 1.0)


def _pairs(varied: Sequence[int], width: int) -> list[tuple[Powers, Powers]]:
    """Pairs of products of which the first is a factor of the second."""
    highest = HIGHEST if len(varied) == 1 else HIGHEST - 1
    choices = [spread(chosen, varied, width) for chosen in product(range(highest + 1), repeat=len(varied))]
    return [
        (one, other)
        for one in choices
        for other in choices
        if one != other and all(low <= high for low, high in zip(one, other, strict=True))
    ]


def _two_terms(points: Sequence[Point], sizes: Sequence[int], first: Powers, second: Powers) -> Polynomial | None:
    """``a · first + b · second``; None where the sizes are not such a sum, or it would fall."""
    table = np.array([[power(point, first), power(point, second)] for point in points])
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
    for degree in (1, 2):
        begin, end = points[0][axis] ** degree, points[-1][axis] ** degree
        slope = (roots[-1] - roots[0]) / (end - begin)
        terms = ((roots[0] - slope * begin, (0,) * width), (slope, spread((degree,), [axis], width)))
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
    found = Polynomial(tuple((float(factor), spread((power,), [axis], width)) for power, factor in enumerate(factors)))
    return [found] if factors[2] >= 0 and factors[1] + 2 * factors[2] * values.max() > 0 else []


def _from_hint(evidence: Evidence) -> Model:
    own = Polynomial(((float(evidence.sizes[0]), (0,) * len(evidence.points[0])),))
    model = capped(with_the_rest(evidence, (), own, borne_out=False), evidence)
    if not evidence.by_data or evidence.spread == 1 or not isinstance(model.likely, Polynomial):
        return model
    return Model(model.likely, (*model.others, *_ends(model.likely, evidence)), is_borne_out=False)


def _fits(terms: Sequence[tuple[float, Powers]], points: Sequence[Point], sizes: Sequence[int]) -> bool:
    found = Polynomial(tuple(terms))
    return all(abs(found.at(point) - size) <= EXACT for point, size in zip(points, sizes, strict=True))
