"""What a pass that is larger than the last will need, if the rest of it grows as what it has asked for so far."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import GRADIENT, OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.passes.last_pass import Fitted, fitted
from oomscope.analysis.passes.same_places import at_same_places
from oomscope.analysis.study import DeviceStudy
from oomscope.model.arrays import FloatArray
from oomscope.model.ordering import is_any


def needs_as_larger(study: DeviceStudy, entry: int, ratio: float) -> int | None:
    """Bytes that will be allocated at the peak of the pass underway at `entry`, if all of it is as much larger.

    Each line by as much as it has grown itself: scores of attention grow with the square of a length, the layers around
    them do not. Lines that it has not come to, and backward, grow by what those come to together. None where the pass
    before it that came as far has failed as well, or there is none.

    Args:
        study: of the device.
        entry: the instant.
        ratio: how much larger this pass is, where no line tells.
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
    return int(study.history.curves.allocated[last.highest]) + round(float(size @ (np.where(known, by_line, rest) - 1)))


def _by_line(study: DeviceStudy, last: Fitted, entry: int) -> FloatArray:
    """float[stacks + 1]: by how much each line's requests have grown, as many as both passes have; 0 where unknown."""
    found, stacks = at_same_places(study, last.run, last.number, entry), len(study.roles.role)
    framed = found.stack >= 0  # without a stack, nothing tells which is which
    now, then = (np.bincount(found.stack[framed], one[framed], stacks) for one in (found.size, found.past))
    return np.divide(now, then, out=np.zeros(stacks), where=then > 0)
