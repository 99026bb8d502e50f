"""Which memory pool each allocation belongs to."""

from __future__ import annotations

import numpy as np

from oomscope.history.lifetimes import BEFORE, Lifetimes
from oomscope.model import Action, Device, IntArray

DEFAULT_POOL = 0


def owners(device: Device, lifetimes: Lifetimes) -> IntArray:
    """int64[lifetimes]: the number of the pool of each.

    Before torch 2.12 entries do not name their pool. The final segments do: what was allocated in one of them while
    it was the same segment belongs to its pool. A segment that was freed before the end counts as the default pool's,
    for a private pool keeps its segments as long as it lives.
    """
    owner = np.maximum(lifetimes.pool.astype(np.int64), DEFAULT_POOL)
    segments = device.layout.segments
    private = np.flatnonzero(segments.pool != DEFAULT_POOL)
    unnamed = np.flatnonzero(lifetimes.pool < 0)
    if not len(private) or not len(unnamed):
        return owner
    begin = segments.address[private]
    address = lifetimes.address[unnamed]
    at = np.searchsorted(begin, address, side="right") - 1
    inside = (at >= 0) & (address < begin[at] + segments.total_size[private[at]])
    inside &= lifetimes.born[unnamed] >= _obtained(device, begin)[at]
    owner[unnamed[inside]] = segments.pool[private[at[inside]]]
    return owner


def _obtained(device: Device, begin: IntArray) -> IntArray:
    """For each of the final segments at `begin`, the entry that obtained it; `BEFORE` where none did."""
    entries = device.trace.entries(Action.SEGMENT_ALLOC)
    latest = dict(zip(device.trace.address[entries].tolist(), entries.tolist(), strict=True))
    return np.array([latest.get(address, BEFORE) for address in begin.tolist()], np.int64)
