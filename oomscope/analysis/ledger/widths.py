"""Of how many bits weights are, told by their sizes alone.

The bytes of a matrix, divided by those of a vector as long as one of its sides, as of a norm or a bias, are its other
side. Where that many numbers of four bytes are a vector, too, but that many of two are none, a number has four.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from oomscope.analysis.labels.kinds import UNKNOWN
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.run import SCALAR, Run
from oomscope.model import BoolArray, IntArray

FULL, HALF = 4, 2
"""Bytes of a number."""
LEAST_SIDE = 32
LARGER = 16
"""Times as large is a matrix at least as a vector."""


def frozen_are_of_32_bits(run: Run) -> bool:
    """Whether the parameters without gradients are of 32 bits, as more of their sizes say than say of 16."""
    left = Counter(run.size[run.parameters | _beside_them(run)].tolist())
    left.subtract(Counter(run.trained_alone.tolist()))
    sizes = np.array([size for size, count in left.items() if count > 0], np.int64)
    return _votes(sizes, FULL) > _votes(sizes, HALF)


def _beside_them(run: Run) -> BoolArray:
    """bool[requests]: what a model makes before its first step and nothing tells more of, as frozen norms' weights."""
    first = run.begin[run.step >= 0].min(initial=NEVER)
    found: BoolArray = run.of(UNKNOWN) & (run.begin < first) & (run.end > first)
    return found


def _votes(sizes: IntArray, width: int) -> int:
    """How many pairs of a matrix and a vector leave a side of which there is a vector, too, in numbers of `width`."""
    vectors = set(sizes.tolist())
    found = 0
    for vector in sizes[sizes % width == 0].tolist():
        matrices = sizes[(sizes % vector == 0) & (sizes >= LARGER * vector) & (sizes > SCALAR)]
        sides = matrices // vector
        found += sum(int(side) * width in vectors for side in sides[sides >= LEAST_SIDE].tolist())
    return found
