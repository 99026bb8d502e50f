"""A request that is the next of a series: a tensor that is joined to, again and again, until the join no longer fits.

Each join reads the last tensor while it writes the next, so the last one is alive when the request for the next fails.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.study import DeviceStudy

LEAST_JOINS = 4
"""Ever larger tensors before the request; two or three may be batches that happen to be longer."""
LEAST_EQUAL_JOINS = 3
"""The same where every one adds as many bytes, as batches that are longer by chance do not."""
EVEN = 3.0
"""By how much one join may add more than they do in the middle; layers of a model do not grow that evenly."""


class RisingRequest(NamedTuple):
    """The series that a request continues.

    Attributes:
        live: bytes of the last tensor, which is still there.
        risen: those of them by which it is larger than the first.
        grown: bytes by which the last tensor and the request are larger than the first.
        per_join: bytes that a join adds.
        joins: how many tensors there were before the request.
        since: the entry that made the first.
    """

    live: int
    risen: int
    grown: int
    per_join: int
    joins: int
    since: int


def find_rising_request(study: DeviceStudy, entry: int) -> RisingRequest | None:
    """The series that the request at `entry` continues; None where its line did not ask for ever more."""
    trace, lifetimes = study.history.trace, study.history.lifetimes
    stack, size = int(trace.stack[entry]), int(trace.size[entry])
    rows = np.flatnonzero((lifetimes.stack == stack) & (lifetimes.born >= 0) & (lifetimes.born < entry))
    if stack < 0 or len(rows) < LEAST_EQUAL_JOINS:
        return None
    rows = rows[np.argsort(lifetimes.born[rows])]
    sizes = np.append(np.maximum(lifetimes.requested[rows], 0), size)
    falls = np.flatnonzero(np.diff(sizes) <= 0)
    first = int(falls[-1]) + 1 if len(falls) else 0
    series, made = sizes[first:], rows[first:]
    added = np.diff(series)
    least = LEAST_EQUAL_JOINS if len(added) and added.min() == added.max() else LEAST_JOINS
    if len(made) < least or lifetimes.freed[made[-1]] <= entry:
        return None
    overlaps = lifetimes.freed[made[:-1]] > lifetimes.born[made[1:]]
    gone = lifetimes.freed[made[:-2]] <= lifetimes.born[made[2:]]
    if added.max() > EVEN * np.median(added) or not (overlaps.all() and gone.all()):
        return None
    live = int(study.history.size[made[-1]])
    risen = live - int(series[0])
    grown = risen + size - int(series[0])
    return RisingRequest(
        live, max(risen, 0), max(grown, 0), int(np.median(added)), len(made), int(lifetimes.born[made[0]])
    )
