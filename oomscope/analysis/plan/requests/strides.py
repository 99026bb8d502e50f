"""What strided convolutions leave of a length, as of a waveform: of 128,000 samples 25,599, 12,799, … 399 frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from oomscope.analysis.plan.requests.facts import Facts
from oomscope.model import IntArray

MOST_STRIDE = 16
KERNEL = 16
"""Places that a convolution without padding takes of a length beside its stride, at most."""
SHORTEST = 32
_FLOATS = (4, 2)


def strided(facts: Facts, length: IntArray, samples: IntArray) -> list[IntArray]:
    """int64[requests] each: how much a convolution leaves of the length that each request was made at, longest first.

    Empty where no convolution makes such lengths of channels that a vector of weights has.

    Args:
        facts: what is known of each request.
        length: int64[requests], at which each was made; 0: not known.
        samples: int64[requests], likewise the batch; 0: not known, taken for one.
    """
    found = {}
    for one in np.unique(length[length > 1]).tolist():
        rows = np.flatnonzero(facts.convolved & facts.forward & (length == one))
        each = np.unique(facts.size[rows] // np.maximum(samples[rows], 1)).tolist()
        found[one] = _left_of(one, sorted(each, reverse=True), facts.vectors)
    depth = min((len(some) for some in found.values()), default=0)
    columns = []
    for level in range(depth):
        column = np.zeros(len(length), np.int64)
        for one, some in found.items():
            column[length == one] = some[level]
        columns.append(column)
    return columns


def _left_of(length: int, each: Iterable[int], channels: Sequence[int]) -> list[int]:
    """Lengths below `length` of which each is another one, or `length`, without a stride's share.

    Of several that a size may have, the one of which fewest places are left over; then the longest, for strides are
    small.
    """
    found = [length]
    for size in each:
        places = {size // (item * width) for item in _FLOATS for width in channels if size % (item * width) == 0}
        missed = {one: min(_missed(before, one) for before in found) for one in places if SHORTEST <= one < found[-1]}
        nearest = min(missed, key=lambda one: (missed[one], -one), default=0)
        if nearest and missed[nearest] <= KERNEL:
            found.append(nearest)
    return found[1:]


def _missed(before: int, after: int) -> int:
    """Places by which a length is not another one divided by a stride; more than a kernel has where there is none."""
    stride = round(before / after)
    return abs(before - stride * after) if 1 < stride <= MOST_STRIDE else KERNEL + 1
