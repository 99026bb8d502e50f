"""Curves and lifetimes reduced to what a figure of a thousand pixels can show, without losing an extreme."""

from __future__ import annotations

import numpy as np

from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray, Int32Array
from oomscope.model.ordering import ascending

BUCKETS = 280
_LONG = 1000
"""Stretches of so many values are looked through one by one."""


@frozen(eq=False)
class TimeAxis:
    """Where each entry stands: by its number, and beside that in time.

    The axis of every figure is that of entries, so that all agree: the step that failed is often the last instant of
    a long wait (a compilation, a pause), and on an axis of time an upright line.

    Attributes:
        zero: the words for the moment that times are told from.
        time_us: int64[entries], ascending; None where the trace has no times.
        zero_us: that moment.
    """

    zero: str
    time_us: IntArray | None
    zero_us: int = 0

    def after_zero(self, entry: int) -> int | None:
        """The microseconds from `zero` to `entry`; None where the trace has no times, or no such entry."""
        if self.time_us is None or not 0 <= entry < len(self.time_us):
            return None
        return int(self.time_us[entry]) - self.zero_us


def time_axis(history: DeviceHistory, zero_entry: int, zero: str) -> TimeAxis:
    """The axis of a device's figures, with times relative to `zero_entry`."""
    entries = history.entries
    if entries < 2 or not history.trace.timed:
        return TimeAxis(zero, None)
    time = history.trace.time_us
    if (time[1:] < time[:-1]).any():
        time = np.maximum.accumulate(time)
    return TimeAxis(zero, time, int(time[min(max(zero_entry, 0), entries - 1)]))


def instants(values: IntArray, first: int, last: int, buckets: int = BUCKETS) -> IntArray:
    """Entries that show a curve at `buckets` pixels: of each stretch the entries of the least and of the most.

    Args:
        values: int64[entries], the curve after each entry.
        first: the first entry to show.
        last: the last one.
        buckets: how many stretches of equal length.

    Returns:
        Entries, ascending, `first` and `last` among them; all of them where there are few.
    """
    if last - first < 2 * buckets:
        return np.arange(first, last + 1)
    part = values[first : last + 1]
    found = [np.array([0, len(part) - 1]), *_extremes(part, _stretches(len(part), buckets))]
    return ascending(np.concatenate(found)) + first


def _extremes(values: IntArray, starts: IntArray) -> list[IntArray]:
    """Of each stretch that begins at one of `starts`, where its greatest value and where its least stands first."""
    if len(starts) * _LONG < len(values):
        stretches = np.split(values, starts[1:])
        places_in = ([one.argmax() for one in stretches], [one.argmin() for one in stretches])
        return [starts + np.array(found, np.int64) for found in places_in]
    lengths, found = np.diff(np.append(starts, len(values))), []
    for extreme in (np.maximum.reduceat(values, starts), np.minimum.reduceat(values, starts)):
        hits = np.flatnonzero(values == np.repeat(extreme, lengths))
        found.append(hits[np.searchsorted(hits, starts)])
    return found


def _stretches(count: int, buckets: int) -> IntArray:
    """Where each of `buckets` parts of ``0..count - 1`` begins: ``k * (count - 1) / buckets``, rounded up."""
    return -(-np.arange(buckets, dtype=np.int64) * (count - 1) // buckets)


def bytes_by_key(born: IntArray, ended: IntArray, size: IntArray, key: IntArray, keys: int, at: IntArray) -> IntArray:
    """Live bytes of each key at each instant.

    Args:
        born: int64[n], the entry after which a row is live.
        ended: int64[n], the entry after which it no longer is.
        size: int64[n], bytes.
        key: integers [n] in ``0..keys-1``.
        keys: how many keys there are.
        at: int64[m], entries, ascending.

    Returns:
        int64[keys, m].
    """
    width = len(at) + 1
    flat, begun, gone = key.astype(np.int64) * width, *instants_of(at, born, ended)
    # Sums of bytes stay far below 2**53, so float64 holds them exactly.
    changes = np.bincount(flat + begun, weights=size, minlength=keys * width)
    changes -= np.bincount(flat + gone, weights=size, minlength=keys * width)
    return np.cumsum(changes.reshape(keys, width), axis=1)[:, :-1].astype(np.int64)


def instants_of(at: IntArray, born: IntArray, ended: IntArray) -> tuple[Int32Array, Int32Array]:
    """For each of `born` and of `ended`, entries from −1 on, the first of the instants `at` that is not before it.

    Returns:
        Two int32 columns of places in `at`, which ascends; its length where all instants are before.
    """
    last = max(int(column.max(initial=-1)) for column in (at, born, ended))
    of_entry = np.repeat(np.arange(len(at) + 1, dtype=np.int32), np.diff(at, prepend=-2, append=last))
    return of_entry[born + 1], of_entry[ended + 1]


def staircase(x: FloatArray, values: IntArray) -> tuple[FloatArray, FloatArray]:
    """The corners of a curve that keeps its value until the next instant, without corners on a straight line."""
    if not len(x):
        return x, values.astype(np.float64)
    keep = np.ones(len(x), np.bool_)
    keep[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
    x, values = x[keep], values[keep]
    return np.repeat(x, 2)[1:], np.repeat(values, 2)[:-1].astype(np.float64)


def last_stretch(entries: int, at_entry: int, boundaries: tuple[int, ...]) -> tuple[int, int] | None:
    """First and last entry of the closer look that ends at `at_entry`: three steps, or a twelfth of the recording.

    None where it would show most of what the whole picture shows already.
    """
    before = [boundary for boundary in boundaries if boundary < at_entry]
    first = before[-3] if len(before) >= 5 else at_entry - max(200, entries // 12)
    last = min(entries - 1, at_entry + max(8, (at_entry - first) // 30))
    return (first, last) if first > 0 and last - first < 0.5 * entries else None
