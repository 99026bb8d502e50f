"""How workspaces of kernels follow from the shape: copies, which grow with it, and what the kernel itself needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from oomscope.analysis.plan.growth.polynomials import (
    EXACT,
    Evidence,
    Model,
    Point,
    Polynomial,
    Powers,
    differ_in,
    power,
    proportional,
    spread,
    with_the_rest,
)
from oomscope.model import IntArray

STEADY = 0.001
"""Of a workspace: so much below a pure proportion is still one, for it is padded."""

NEARLY = 0.06
"""Of a workspace: by so much a line misses what one kernel takes that splits its work otherwise at each shape."""

LEAST_SHAPES = 3
"""At which a workspace is seen: of two, both may be of another kernel than the next."""

BY_DATA = 0.1
"""By so much the power that two sizes have in a parameter may miss a whole number where data decides."""

MOST_POWER = 4
"""Of a parameter: that of scores in the side of an image."""

OF_THE_KERNEL = 0.1
"""Of a workspace: a larger constant is of the algorithm, which may be another one where there is less or more to do."""


def workspace_model(evidence: Evidence, varied: Sequence[int]) -> Model:
    """The model of what is given back at once and is in no pure proportion to the shapes it was seen at."""
    found = _steady(evidence, varied, STEADY)
    if found is None and any(evidence.hint.degree[axis] > 1 for axis in varied):
        # Of an image or a volume. A recurrent layer has a third part, which only looks like a line.
        found = _steady(evidence, varied, NEARLY)
    return found or _of_two_kernels(evidence, varied) or changed(evidence)


def _growing(evidence: Evidence, varied: Sequence[int]) -> list[int]:
    """Those of `varied` but for what leaves a workspace as it is to the byte, as a batch does an evaluation's."""
    points, sizes = evidence.points, evidence.sizes
    alone = [(differ_in(points[0], point), size) for point, size in zip(points[1:], sizes[1:], strict=True)]
    steady = [axis for axis in varied if {size for axes, size in alone if axes == [axis]} == {sizes[0]}]
    return [axis for axis in varied if axis not in steady]


def _of_two_kernels(evidence: Evidence, varied: Sequence[int]) -> Model | None:
    """A workspace of which two recordings have that of one kernel; None where not just one pair can be such.

    Copies of inputs and outputs are as large for either kernel; what one has beside them differs. Of all pairs, only
    those lie on a possible line that neither falls nor begins below 0.
    """
    points, sizes = evidence.points, evidence.sizes
    growing = _growing(evidence, varied)
    degree = tuple(max(power, 1) if axis in growing else 0 for axis, power in enumerate(evidence.hint.degree))
    values = [power(point, degree) for point in points]
    lines = set()
    for one, other in combinations(range(len(points)), 2):
        if values[one] != values[other]:
            factor = (sizes[other] - sizes[one]) / (values[other] - values[one])
            if factor > 0 and sizes[one] - factor * values[one] >= -STEADY * sizes[one]:
                lines.add((one, other, factor))
    if len(points) < LEAST_SHAPES or len(lines) != 1:
        return None
    one, other, factor = lines.pop()
    constants = [sizes[row] - factor * values[row] for row in range(len(points)) if row != other]
    constants.sort(key=lambda constant: constant != sizes[one] - factor * values[one])
    none = spread((), (), len(degree))
    likely, *others = (Polynomial(((constant, none), (factor, degree))) for constant in constants)
    return Model(likely, tuple(others))


def _steady(evidence: Evidence, varied: Sequence[int], tolerance: float) -> Model | None:
    """A workspace of one algorithm: a constant and a part in proportion, neither negative; None where it is not.

    It holds copies of inputs and outputs, which grow, and of weights, which do not. One whose algorithm changed may lie
    on such a line by chance, but then others do not; one that splits its work otherwise at each shape lies beside it.
    """
    points, sizes, likely = evidence.points, evidence.sizes, evidence.hint.degree
    growing = _growing(evidence, varied)
    degrees = [(likely[axis],) if likely[axis] else (1,) if len(growing) == 1 else (1, 2, 3) for axis in growing]
    for chosen in product(*degrees):
        powers = spread(chosen, growing, len(points[0]))
        found = _line(points, sizes, powers, tolerance)
        if found is not None:
            return _of_line(evidence, varied, found, powers)
    return None


def _of_line(evidence: Evidence, varied: Sequence[int], line: tuple[float, float], powers: Powers) -> Model:
    """A constant and a factor. What mostly depends on the kernel and not on the shape is not sure at another one."""
    constant, factor = line
    terms = ((constant, spread((), (), len(powers))), (factor, powers))
    model = with_the_rest(evidence, varied, Polynomial(terms), borne_out=True)
    if constant <= OF_THE_KERNEL * evidence.sizes[0]:
        return Model(model.likely, model.others)
    return Model(model.likely, (*model.others, proportional(evidence, 0)), is_borne_out=False)


def _line(
    points: Sequence[Point], sizes: Sequence[int], powers: Powers, tolerance: float
) -> tuple[float, float] | None:
    """A constant and a factor of a product, neither negative, that give all sizes but for what aligns them."""
    values = np.array([power(point, powers) for point in points])
    if len(set(values.tolist())) < 2:
        return None
    there = np.array(sizes, np.float64)
    alike = _linear_alone(points, powers)
    alike = alike if tolerance > STEADY and len(set(values[alike].tolist())) > 1 else np.arange(len(points))
    factor, constant = np.polyfit(values[alike], there[alike], 1)
    missed = np.abs(constant + factor * values - there)
    steady = np.all(missed <= np.maximum(tolerance * there, EXACT))
    return (float(constant), float(factor)) if steady and factor > 0 and constant >= -STEADY * sizes[0] else None


def _linear_alone(points: Sequence[Point], powers: Powers) -> IntArray:
    """The rows of the first shape and those that differ from it in what is linear alone, as the batch is.

    A kernel splits an image of another side otherwise; of more images it takes just as much more.
    """
    rows = [[axis for axis in differ_in(points[0], point) if powers[axis] != 1] for point in points]
    return np.array([row for row, others in enumerate(rows) if not others], np.int64)


def changed(evidence: Evidence) -> Model:
    """A kernel's workspace whose algorithm changed: the own size, in proportion, or any that was seen.

    Or what the data decides, as the edges of a graph are, which is nearly in proportion to what was varied.
    """
    degree = None if evidence.at_once else nearest_degree(evidence)
    likely = _three_parts(evidence) or proportional(evidence, 0, degree)
    others = [proportional(evidence, row, degree) for row in range(1, len(evidence.points))]
    return Model(likely, tuple(others), is_borne_out=False)


def nearest_degree(evidence: Evidence) -> Powers | None:
    """The powers that sizes nearly have in each parameter that a recording changes alone; None where they have none.

    At shapes that differ in several parameters sizes must nearly be as these powers have them.
    """
    points, sizes = evidence.points, evidence.sizes
    degree, together = list(evidence.hint.degree), []
    for point, size in zip(points[1:], sizes[1:], strict=True):
        changes = [axis for axis in range(len(point)) if point[axis] != points[0][axis]]
        if len(changes) != 1:
            together.append((point, size))
            continue
        told = math.log(size / sizes[0]) / math.log(point[changes[0]] / points[0][changes[0]])
        if abs(told - round(told)) > BY_DATA or not 1 <= round(told) <= MOST_POWER:
            return None
        degree[changes[0]] = round(told)
    found = proportional(evidence, 0, tuple(degree))
    borne_out = all(abs(found.at(point) - size) <= NEARLY * size for point, size in together)
    return tuple(degree) if borne_out and len(together) < len(points) - 1 else None


def _three_parts(evidence: Evidence) -> Polynomial | None:
    """A constant, a part in proportion to one parameter and one to the product of two: weights, states, activations.

    As the reserve of a recurrent layer is. Three shapes tell them, and none may be negative.
    """
    points, sizes, width = evidence.points, evidence.sizes, len(evidence.points[0])
    varied = [axis for axis in range(width) if len({point[axis] for point in points}) > 1]
    if len(varied) != 2 or len(points) != 3:
        return None
    for axis in varied:
        powers = [(0,) * width, spread((1,), [axis], width), spread((1, 1), varied, width)]
        table = np.array([[power(point, one) for one in powers] for point in points])
        if np.linalg.matrix_rank(table / table[0], tol=1e-9) == len(powers):
            factors = np.linalg.solve(table / table[0], np.array(sizes, np.float64)) / table[0]
            if (factors >= 0).all():
                return Polynomial(tuple(zip(factors.tolist(), powers, strict=True)))
    return None
