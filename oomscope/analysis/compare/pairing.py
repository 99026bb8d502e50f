"""The live blocks of one site before and after, paired by their sizes: by one factor, or as they were."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.frozen import frozen
from oomscope.model import IntArray

TOLERANCE = 0.01
"""By how much a size may depart from the factor: sizes are rounded, and of some dimensions only a part is the batch."""

_SAME, _SCALED, _SQUARED = 0, 1, 2
"""Powers of the factor."""


@frozen(eq=False)
class LiveBlocks:
    """Blocks in the order in which they were made.

    Attributes:
        requested: int64[n], bytes asked for.
        size: int64[n], bytes of each block.
    """

    requested: IntArray
    size: IntArray

    def by_size(self) -> tuple[IntArray, IntArray]:
        """`requested` and `size` in the order of the first, then of the second."""
        order = np.lexsort((self.size, self.requested))
        return self.requested[order], self.size[order]


@frozen
class Paired:
    """How the blocks of two sides go together.

    Attributes:
        by_ratio: change of the bytes of blocks that are larger by the factor.
        by_square: change of the bytes of blocks that are larger by its square, as attention scores with the length.
        by_rounding: change of the bytes of blocks that were asked for in the same size.
        scaled, squared, same: bytes, of both sides, of the blocks of each.
    """

    by_ratio: int = 0
    by_square: int = 0
    by_rounding: int = 0
    scaled: int = 0
    squared: int = 0
    same: int = 0

    @property
    def explained(self) -> int:
        """Bytes of both sides that are in pairs."""
        return self.scaled + self.squared + self.same


class _Side:
    """The blocks of one side that are not yet paired, by their requested size."""

    def __init__(self, blocks: LiveBlocks) -> None:
        requested, size = blocks.by_size()
        self.sums = np.concatenate([[0], np.cumsum(size)])
        self.sizes, self.next = np.unique(requested, return_index=True)
        self.end = np.append(self.next[1:], len(requested))
        self.next = self.next.copy()

    def left(self, at: int) -> int:
        return int(self.end[at] - self.next[at])

    def take(self, at: int, count: int) -> int:
        """The bytes of `count` more blocks of one size."""
        first = int(self.next[at])
        self.next[at] = first + count
        return int(self.sums[first + count] - self.sums[first])


def pair(before: LiveBlocks, after: LiveBlocks, factor: float | None) -> Paired:
    """Pair the blocks of one site; whichever way explains more: the factor first, or equal sizes first."""
    if factor is None:
        return _paired(before, after, (_SAME,), 1.0)
    as_they_were = _paired(before, after, (_SAME, _SCALED, _SQUARED), factor)
    scaled = _paired(before, after, (_SCALED, _SAME, _SQUARED), factor)
    return scaled if scaled.explained > as_they_were.explained else as_they_were


def _paired(before: LiveBlocks, after: LiveBlocks, powers: tuple[int, ...], factor: float) -> Paired:
    """Pairs of blocks by the powers of the factor, in their order."""
    ours, theirs = _Side(before), _Side(after)
    changes, sums = [0, 0, 0], [0, 0, 0]
    for power in powers:
        for one, other in _meeting(ours.sizes, theirs.sizes, factor**power, TOLERANCE if power else 0.0):
            count = min(ours.left(one), theirs.left(other))
            if count:
                was, now = ours.take(one, count), theirs.take(other, count)
                changes[power] += now - was
                sums[power] += was + now
    return Paired(
        by_ratio=changes[_SCALED], by_square=changes[_SQUARED], by_rounding=changes[_SAME],
        scaled=sums[_SCALED], squared=sums[_SQUARED], same=sums[_SAME],
    )  # fmt: skip


def _meeting(ours: IntArray, theirs: IntArray, factor: float, slack: float) -> Iterator[tuple[int, int]]:
    """Which sizes are which by `factor`, as positions in both ascending columns."""
    target = ours * factor
    low = np.searchsorted(theirs, target / (1 + slack), side="left")
    high = np.searchsorted(theirs, target * (1 + slack), side="right")
    for one in np.flatnonzero(high > low).tolist():
        for other in sorted(range(int(low[one]), int(high[one])), key=lambda at: abs(theirs[at] - target[one])):
            yield one, other
