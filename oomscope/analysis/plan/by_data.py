"""What the data decides: made in another size by another step of the same shape, as what is routed to an expert.

Of a padded batch the data decides how long the longest sample is, which moves sizes by little. What an expert is given
may be as much in two steps by chance, so that all that a line makes counts, where most of it is decided so.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.alignment import UNFRAMED
from oomscope.analysis.plan.recordings import Recording
from oomscope.analysis.plan.requests.facts import LEAST_WORKSPACE
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray

MOSTLY = 0.5
"""Of what a line makes."""
NUDGED = 0.05
"""Of a size: data that move it by no more leave what it grows with as it is."""
PARTS = 1e9
"""Of one, to which logarithms of ratios of whole bytes are told apart."""
LEAST_RATIO = 0.1
"""Of what a line makes in one step to another: less is no chance."""


@frozen(eq=False)
class Decided:
    """What the data decides.

    Attributes:
        rows: bool[requests].
        nudged: bool[requests], those of them that it moves by little.
        squared: bool[requests], those whose like in another step is off by the square of what others are.
        spread: float[requests], how many times as much or as little the line of each makes in other steps; 1: as much.
    """

    rows: BoolArray
    nudged: BoolArray
    squared: BoolArray
    spread: FloatArray


def decided(recording: Recording, elsewhere: IntArray) -> Decided:
    """What of a recording the data decides.

    Args:
        recording: the recording.
        elsewhere: int64[requests], bytes of each request's like in another step of the same shape.
    """
    size, line = recording.program.size, recording.key - UNFRAMED
    moved: FloatArray = np.abs(elsewhere - size) / np.maximum(size, 1)
    count = int(line.max(initial=0)) + 1
    often = np.bincount(line[moved > 0], minlength=count) > MOSTLY * np.bincount(line, minlength=count)
    often[0] = False  # of no line, as in a backward
    most = np.zeros(count)
    np.maximum.at(most, line, moved)
    rows = (moved > 0) | often[line]
    nudged = rows & (np.where(line > 0, most[line], moved) <= NUDGED)
    others = np.unique(size[(line > 0) & ~rows])
    sizes = np.setdiff1d(np.unique(size[rows & (line > 0) & (size >= LEAST_WORKSPACE)]), others)
    back = (line == 0) & np.isin(size, sizes)
    far = np.unique(size[rows & (line > 0) & ~nudged])
    rows, nudged = rows | back, (nudged | (back & ~rows)) & ~(back & np.isin(size, far))
    return Decided(rows, nudged, _squared(recording, elsewhere), _spread(recording))


def _squared(recording: Recording, elsewhere: IntArray) -> BoolArray:
    """bool[requests]: what changes by the square of a ratio that others change by, and what lines of such make.

    Two steps may have as many tokens by chance; a line that multiplies queries and keys may copy both before.
    """
    size, line = recording.program.size, recording.key - UNFRAMED
    moved = (size >= LEAST_WORKSPACE) & (elsewhere > 0) & (elsewhere != size)
    ratio = np.where(moved, np.log(np.maximum(elsewhere, 1) / np.maximum(size, 1)), 0.0)
    known = np.unique(_in_parts(ratio[moved]))
    found = moved & np.isin(_in_parts(ratio / 2), np.concatenate([known - 1, known, known + 1]))
    count = int(line.max(initial=0)) + 1
    squared = np.bincount(line[found], minlength=count) > MOSTLY * np.bincount(line[moved], minlength=count)
    squared[0] = False  # of no line, as in a backward
    made = (found & (line > 0)) | (squared[line] & (size >= LEAST_WORKSPACE))
    sizes = np.setdiff1d(np.unique(size[made]), np.unique(size[(line > 0) & ~made]))
    return np.asarray(made | ((line == 0) & (found | np.isin(size, sizes))))


def _in_parts(ratio: FloatArray) -> IntArray:
    return np.round(ratio * PARTS).astype(np.int64)


def _spread(recording: Recording) -> FloatArray:
    """float[requests]: the same of what the line of each makes in all in other steps of the same shape.

    Only steps in which it makes as many requests count.
    """
    line, size = recording.key - UNFRAMED, recording.program.size
    count = int(line.max(initial=0)) + 1
    spread = np.ones(len(size))
    units = [one for one in recording.units if one.step >= 0 and one.shape]
    made = {
        id(one): (
            np.bincount(line[one.begin : one.end], minlength=count),
            np.bincount(line[one.begin : one.end], weights=size[one.begin : one.end], minlength=count),
        )
        for one in units
    }
    for unit in units:
        often, total = made[id(unit)]
        most = np.ones(count)
        for other in (one for one in units if one is not unit and one.shape == unit.shape):
            times, bytes_ = made[id(other)]
            ratio = np.where((times == often) & (total > 0), bytes_ / np.maximum(total, 1), 1.0)
            most = np.maximum(most, np.maximum(ratio, 1 / np.maximum(ratio, LEAST_RATIO)))
        most[0] = 1.0  # of no line, as in a backward
        spread[unit.begin : unit.end] = most[line[unit.begin : unit.end]]
    return spread
