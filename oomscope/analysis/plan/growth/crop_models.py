"""Crops of a part of an image that are cut into whole patches, and a few tokens beside them.

How many patches a side has follows that of the image, rounded, up, or down. Two sides do not tell which, but few
numbers are possible at a third. Windows, which have no tokens beside their patches, are those of `steps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from oomscope.analysis.plan.growth.polynomials import Evidence, Model, Point, Powers, power
from oomscope.analysis.plan.growth.token_models import BESIDE, beside, per_side
from oomscope.frozen import frozen

SQUARE = 2
"""The degree of a side in its places."""
FEATURES, SCORES = 1, 2
"""By which power of the places a request grows."""
LEAST_PATCHES, LEAST_PIXELS = 2, 4
"""Patches of a side, and pixels of a patch."""
EXACT = 1e-9
_LAST = 1e-9
"""Of a patch: what an open end of an interval is off its end."""

Each = Sequence[tuple[float, float]]


@frozen
class _Crops:
    """Bytes of so many patches a side, and tokens beside them, to a power; times a product of other parameters.

    Attributes:
        size: bytes at `origin`.
        count: patches of a side there.
        more: tokens beside them.
        degree: of all tokens.
        axis: which parameter the side is.
        density: patches of a pixel, before they are rounded.
        rounded: how.
        powers: of the other parameters.
        origin: the shape at which it was seen.
    """

    size: float
    count: int
    more: int
    degree: int
    axis: int
    density: float
    rounded: Callable[[float], int]
    powers: Powers
    origin: Point

    def at(self, point: Point) -> float:
        """Bytes at a point."""
        patches = max(self.rounded(self.density * point[self.axis]), 1)
        ratio = (patches**SQUARE + self.more) / (self.count**SQUARE + self.more)
        return self.size * float(ratio**self.degree) * power(point, self.powers) / power(self.origin, self.powers)


def crop_model(evidence: Evidence, varied: Sequence[int]) -> Model | None:
    """The model of what has whole patches of a side; None where sizes are not those of any, or are in proportion."""
    for axis in varied:
        if evidence.usual[axis] != SQUARE or (each := per_side(evidence, varied, axis)) is None:
            continue
        sides = sorted(each.items())
        if not 0 < sides[0][1] < sides[-1][1]:
            continue
        for more in filter(None, BESIDE):
            for degree in (FEATURES, SCORES):
                counts = _counts(sides, more, degree)
                if counts is not None and (laws := _laws(evidence, varied, axis, sides, counts, more, degree)):
                    return Model(laws[0], tuple(laws[1:]), is_borne_out=False)
    return None


def _counts(each: Each, more: int, degree: int) -> list[int] | None:
    """The least numbers of patches of each side that all bytes are in proportion to; None: there are none."""
    first, size = each[0]
    ratios = [(bytes_ / size) ** (1 / degree) for _, bytes_ in each]
    for count in range(LEAST_PATCHES, int(first) // LEAST_PIXELS + 1):
        tokens = count**SQUARE + more
        places = [tokens * ratio - more for ratio in ratios]
        counts = [math.isqrt(max(round(one), 0)) for one in places]
        exact = all(abs(place - own**SQUARE) <= EXACT * place for place, own in zip(places, counts, strict=True))
        if exact and round(size) % tokens**degree == 0:
            return counts
    return None


def _laws(
    evidence: Evidence, varied: Sequence[int], axis: int, each: Each, counts: Sequence[int], more: int, degree: int
) -> list[_Crops]:
    """The laws by which a side may have these patches: the middle of those that round first; none: it cannot."""
    sides = [side for side, _ in each]
    if len({count / side for count, side in zip(counts, sides, strict=True)}) == 1:
        return []
    own = sides.index(evidence.points[0][axis])
    found = []
    for rounded, low, high in ((_nearest, -0.5, 0.5), (math.ceil, -1 + _LAST, 0.0), (math.floor, 0.0, 1 - _LAST)):
        least = max((count + low) / side for count, side in zip(counts, sides, strict=True))
        most = min((count + high) / side for count, side in zip(counts, sides, strict=True))
        densities = ((least + most) / 2, least, most) if least <= most else ()
        found += [
            _Crops(
                size=evidence.sizes[0],
                count=counts[own],
                more=more,
                degree=degree,
                axis=axis,
                density=density,
                rounded=rounded,
                powers=beside(evidence, varied, axis),
                origin=evidence.points[0],
            )
            for density in densities
        ]
    return found


def _nearest(patches: float) -> int:
    return math.floor(patches + 0.5)
