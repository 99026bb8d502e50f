"""How large the numbers of a snapshot may be, so that no sum of them leaves 64 bits."""

from __future__ import annotations

import numpy as np

from oomscope.errors import SnapshotError
from oomscope.model import IntArray
from oomscope.reading.columns import Where

LARGEST_SIZE = 1 << 50
"""Bytes of a segment, a block or an allocation: a pebibyte, far beyond any device. A larger one is damage."""
LARGEST_REQUEST = 1 << 62
"""Bytes of a request that failed. A program may ask for anything; what is larger still fits 63 bits when rounded up."""
LARGEST_SUM = 1 << 62
"""Bytes of all entries, segments or blocks together, so that running sums of them are exact."""
_HIGHEST_ADDRESS = (1 << 63) - 1


def check_sizes(sizes: IntArray, key: str, where: Where) -> None:
    """Refuse what no device can hold.

    Raises:
        SnapshotError: a size is negative, or it or the sum of all is beyond the bounds above.
    """
    wrong = (sizes < 0) | (sizes > LARGEST_SIZE)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "below 0 or beyond 63 bits" if sizes[row] < 0 else "more than any device has"
        raise SnapshotError(f"{where(row)} has a '{key}' of {sizes[row]:,} bytes, {what}: the file is damaged.")
    if sizes.sum(dtype=np.float64) > LARGEST_SUM:
        raise SnapshotError(f"the '{key}' of all rows up to {where(len(sizes) - 1)} sum to more than 62 bits hold.")


def check_ends(address: IntArray, sizes: IntArray, where: Where) -> None:
    """Refuse what ends beyond the last address.

    Raises:
        SnapshotError: an address and its size leave 63 bits.
    """
    wrong = address > _HIGHEST_ADDRESS - sizes
    if wrong.any():
        raise SnapshotError(f"{where(int(np.argmax(wrong)))} ends beyond the last address: the file is damaged.")
