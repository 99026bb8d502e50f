"""Bytes allocated, by how long they lived."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.frozen import frozen


@frozen(eq=False)
class Lifespans:
    """Allocations by how long they lived: names of the classes, bytes freed and bytes still live in each."""

    names: tuple[str, ...]
    freed: np.ndarray[tuple[int], np.dtype[np.int64]]
    live: np.ndarray[tuple[int], np.dtype[np.int64]]


_CLASSES = (
    (1e3, "< 1 ms"), (1e4, "1–10 ms"), (1e5, "10–100 ms"), (1e6, "0.1–1 s"), (1e7, "1–10 s"), (6e7, "10–60 s"),
    (np.inf, "> 1 min"),
)  # fmt: skip


def lifespans(device: DeviceFindings) -> Lifespans | None:
    """How long allocations of the recording lived up to the instant of attribution; None without times."""
    history = device.history
    trace, table = history.trace, history.lifetimes
    if not trace.timed or len(trace) < 2:
        return None
    at = min(device.at_entry, len(trace) - 1)
    rows = np.flatnonzero((table.born >= 0) & (table.born <= at))
    if not len(rows):
        return None
    still = table.freed[rows] > at
    end = trace.time_us[np.minimum(table.freed[rows], at)]
    length = np.maximum(end - trace.time_us[table.born[rows]], 0)
    number = np.searchsorted([bound for bound, _ in _CLASSES], length, side="right")
    size = history.size[rows].astype(np.float64)
    freed = np.bincount(number[~still], weights=size[~still], minlength=len(_CLASSES)).astype(np.int64)
    live = np.bincount(number[still], weights=size[still], minlength=len(_CLASSES)).astype(np.int64)
    # Classes beyond the longest life, and beyond what a reader needs to see the rest in proportion, say nothing.
    shown = max(4, int(np.flatnonzero(freed + live).max(initial=0)) + 1)
    return Lifespans(tuple(name for _, name in _CLASSES[:shown]), freed[:shown], live[:shown])
