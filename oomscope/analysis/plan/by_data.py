"""What the data decides: made in another size by another step of the same shape, as what is routed to an expert.

Of a padded batch the data decides how long the longest sample is, which moves sizes by little. What an expert is given
may be as much in two steps by chance, so that all that a line makes counts, where most of it is decided so.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.alignment import UNFRAMED
from oomscope.analysis.plan.facts import LEAST_WORKSPACE
from oomscope.analysis.plan.recordings import Recording
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray

MOSTLY = 0.5
"""Of what a line makes."""
NUDGED = 0.05
"""Of a size: data that move it by no more leave what it grows with as it is."""


@frozen(eq=False)
class Decided:
    """What the data decides.

    Attributes:
        rows: bool[requests].
        nudged: bool[requests], those of them that it moves by little.
    """

    rows: BoolArray
    nudged: BoolArray

    @classmethod
    def none(cls, count: int) -> Decided:
        """Of so many requests none is."""
        return cls(np.zeros(count, np.bool_), np.zeros(count, np.bool_))


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
    return Decided(rows | back, (nudged | (back & ~rows)) & ~(back & np.isin(size, far)))
