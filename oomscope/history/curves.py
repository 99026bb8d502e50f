"""Curves: allocated, active and reserved bytes after every entry."""

from __future__ import annotations

import numpy as np

from oomscope.frozen import frozen
from oomscope.history.lifetimes import BEFORE, Lifetimes
from oomscope.model import Action, IntArray, Layout, Trace


@frozen(eq=False)
class Curves:
    """Bytes over time; each int64[entries + 1], where row ``t + 1`` is the value once entry `t` has happened.

    The curves are anchored at the final segments, which are exact, and run backwards from there, so neither a wrapped
    ring nor a late start needs a guess.
    """

    allocated: IntArray
    active: IntArray
    reserved: IntArray

    def at(self, entry: int) -> tuple[int, int, int]:
        """Allocated, active and reserved bytes once `entry` has happened (`BEFORE`: at the start)."""
        row = entry - BEFORE
        return int(self.allocated[row]), int(self.active[row]), int(self.reserved[row])


def draw(trace: Trace, layout: Layout, lifetimes: Lifetimes, size: IntArray) -> Curves:
    """The curves of one device.

    Args:
        trace: the device's trace.
        layout: its final segments and blocks, where the curves end.
        lifetimes: its lifetimes.
        size: int64[lifetimes], bytes of each block.
    """
    entries = len(trace)
    reserved = np.zeros(entries + 1, np.int64)
    grows = trace.entries(Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
    shrinks = trace.entries(Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
    reserved[grows + 1] = trace.size[grows]
    reserved[shrinks + 1] = -trace.size[shrinks]
    begun = _begun(entries, lifetimes.born, size)
    return Curves(
        allocated=_anchored(begun - _ended(entries, lifetimes.freed, size), layout.allocated),
        active=_anchored(begun - _ended(entries, lifetimes.gone, size), layout.active),
        reserved=_anchored(reserved, layout.reserved),
    )


def _begun(entries: int, born: IntArray, size: IntArray) -> IntArray:
    """What begins at each entry; row 0 is the start."""
    begun = np.zeros(entries + 1, np.int64)
    begins = born > BEFORE
    begun[born[begins] + 1] = size[begins]  # one entry gives birth to one block
    return begun


def _ended(entries: int, ended: IntArray, size: IntArray) -> IntArray:
    """What ends at each entry; row 0 is the start."""
    ends = (ended > BEFORE) & (ended < entries)
    # Sums of float64 are exact up to 2**53 bytes, and far faster than adding at indices.
    return np.bincount(ended[ends] + 1, weights=size[ends], minlength=entries + 1).astype(np.int64)


def _anchored(changes: IntArray, final: int) -> IntArray:
    """Running sums that end at `final`."""
    curve = np.cumsum(changes)
    curve += final - int(curve[-1])
    return curve
