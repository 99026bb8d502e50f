"""Parts of a batch that is divided in whole numbers, as an evaluation's of ``batch // 2`` samples.

Two batches that such a number does not divide leave sizes in another ratio than their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from oomscope.analysis.plan.growth.polynomials import Evidence, Law, Model, Point, differ_in
from oomscope.frozen import frozen

MOST = 4
"""The largest divisor that is looked for: with larger ones, more ratios are so by chance."""
LEAST = 1 << 16
"""Bytes of what may tell a divisor."""
NEARLY = 1e-9


@frozen
class _Divided:
    """A law of whole parts of a parameter.

    Attributes:
        law: of the parts.
        axis: the parameter that is divided.
        divisor: by what.
    """

    law: Law
    axis: int
    divisor: int

    def at(self, point: Point) -> float:
        """Bytes at a point, of one part at least."""
        return self.law.at(_divided(point, self.axis, self.divisor))


def divisor_of(evidence: Evidence, varied: Sequence[int]) -> tuple[int, int] | None:
    """A parameter, and by what its values are divided; None where the sizes are not in the ratio of such parts."""
    seen = list(zip(evidence.points, evidence.sizes, strict=True))
    for axis in varied if evidence.sizes[0] >= LEAST else ():
        pairs = [(one, other) for one, other in combinations(seen, 2) if differ_in(one[0], other[0]) == [axis]]
        for divisor in range(2, MOST + 1):
            ratios = [_ratios(one, other, axis, divisor) for one, other in pairs]
            fits = all(abs(size - parts) <= NEARLY * size for size, parts, _ in ratios)
            # As many parts of both would be what does not grow.
            if fits and any(min(abs(parts - whole), abs(parts - 1)) > NEARLY for _, parts, whole in ratios):
                return axis, divisor
    return None


def _ratios(one: tuple[Point, int], other: tuple[Point, int], axis: int, divisor: int) -> tuple[float, float, float]:
    """Of two sizes, of the whole parts of the parameter that differs, and of that."""
    (here, size), (there, larger) = one, other
    parts = _divided(there, axis, divisor)[axis] / _divided(here, axis, divisor)[axis]
    return larger / size, parts, there[axis] / here[axis]


def of_parts(evidence: Evidence, axis: int, divisor: int) -> Evidence:
    """The evidence at whole parts of a parameter in place of its values."""
    return replace(evidence, points=tuple(_divided(point, axis, divisor) for point in evidence.points))


def of_wholes(model: Model, axis: int, divisor: int) -> Model:
    """A model of such parts as one of the parameter."""
    likely, *others = (_Divided(law, axis, divisor) for law in (model.likely, *model.others))
    return replace(model, likely=likely, others=tuple(others))


def _divided(point: Point, axis: int, divisor: int) -> Point:
    return tuple(float(max(value // divisor, 1)) if one == axis else value for one, value in enumerate(point))
