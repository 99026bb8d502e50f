"""What a pass that is larger than the last will need, if the rest of it grows as what it has asked for so far."""

from __future__ import annotations

from math import log

import numpy as np

from oomscope.analysis.labels.categories import GRADIENT, OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.passes.last_pass import Fitted, fitted
from oomscope.analysis.passes.records import NO_LONGER
from oomscope.analysis.passes.same_places import at_same_places
from oomscope.analysis.study import DeviceStudy
from oomscope.frozen import frozen
from oomscope.model.arrays import FloatArray
from oomscope.model.ordering import is_any

FINE = 1e-3
"""To which a share is told."""


@frozen(eq=False)
class LargerPass:
    """The pass underway, as the last one that came as far would be if all of it were as much larger.

    Attributes:
        past: bytes that were allocated at the peak of that one.
        size: float64[blocks]: those of them that it had made.
        growth: float64[blocks]: by how much each has grown.
        ratio: by how much what the passes take in has.
    """

    past: int
    size: FloatArray
    growth: FloatArray
    ratio: float

    def needs(self, share: float = 1.0) -> int:
        """Bytes at its peak, if it took in `share` of what it has: scores shrink with the square of that."""
        exponent = 1.0 if share == 1 else 1 + log(share) / log(self.ratio)
        factor = self.growth**exponent
        return self.past + round(float(self.size @ (factor - 1)))

    def share_that_fits(self, room: int) -> float | None:
        """The largest share of what it has taken in that needs at most `room` bytes; None where all or none does.

        Nor is one known of a stair of a few passes that is hardly higher than the last.
        """
        if self.ratio <= NO_LONGER:
            return None
        low, high = 1 / self.ratio, 1.0
        if self.needs(low) > room or self.needs(high) <= room:
            return None
        while high - low > FINE:
            middle = (low + high) / 2
            low, high = (middle, high) if self.needs(middle) <= room else (low, middle)
        return low


def larger_pass(study: DeviceStudy, entry: int, ratio: float) -> LargerPass | None:
    """The pass underway at `entry`, which is `ratio` times as large as the last.

    Each line has grown by as much as its own requests: scores of attention grow with the square of a length, the layers
    around them do not. Lines that it has not come to, and backward, grow by what those come to together. None where the
    pass before it that came as far has failed as well, or there is none.
    """
    last = fitted(study, entry)
    if last is None:
        return None
    lifetimes = study.history.lifetimes
    # Not what it began with: a variable may keep results of the pass before until it is well under way.
    rows = np.flatnonzero(lifetimes.allocated_at(last.highest - 1) & (lifetimes.born >= last.begin))
    rows = rows[~is_any(study.categories[rows], (PARAMETER, GRADIENT, OPTIMIZER_STATE))]
    size, by_line = study.history.size[rows], _by_line(study, last, entry)[lifetimes.stack[rows]]
    known = by_line > 0
    rest = float(size[known] @ by_line[known] / size[known].sum()) if size[known].any() else ratio
    growth = np.where(known, by_line, rest)
    return LargerPass(int(study.history.curves.allocated[last.highest]), size.astype(np.float64), growth, ratio)


def _by_line(study: DeviceStudy, last: Fitted, entry: int) -> FloatArray:
    """float[stacks + 1]: by how much each line's requests have grown, as many as both passes have; 0 where unknown."""
    found, stacks = at_same_places(study, last.run, last.number, entry), len(study.roles.role)
    framed = found.stack >= 0  # without a stack, nothing tells which is which
    now, then = (np.bincount(found.stack[framed], one[framed], stacks) for one in (found.size, found.past))
    return np.divide(now, then, out=np.zeros(stacks), where=then > 0)
