"""The run as its recording's steps tell it: what each left allocated, for as long as the job ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import IntArray, Snapshot

UNKNOWN = -1


@frozen(eq=False)
class Series:
    """The finished steps of one device, in the order in which they ended; all int64[rows], `UNKNOWN` where it is that.

    Attributes:
        begin_us, end_us: microseconds since the epoch.
        count: how many steps a row stands for: old rows are merged.
        allocated, reserved: bytes at the end.
        peak: the most that was allocated, where the recording or the trace tells it.
        retries: of all devices.
    """

    begin_us: IntArray
    end_us: IntArray
    count: IntArray
    allocated: IntArray
    reserved: IntArray
    peak: IntArray
    retries: IntArray

    def __len__(self) -> int:
        return len(self.end_us)


def series_of(snapshot: Snapshot, history: DeviceHistory) -> Series | None:
    """The steps of a device; None where none with figures of it was recorded."""
    context, device = snapshot.recorded, history.index
    steps = sorted(
        (step for step in (*context.steps_before, *context.steps) if step.end_us is not None),
        key=lambda step: (step.end_us or 0, step.begin_us),
    )
    steps = [step for step in steps if _of(step.allocated, device) != UNKNOWN]
    if not steps:
        return None
    begin = np.array([step.begin_us for step in steps], np.int64)
    end = np.array([step.end_us for step in steps], np.int64)
    known = np.array([_of(step.peak_allocated, device) for step in steps], np.int64)
    return Series(
        begin_us=begin,
        end_us=end,
        count=np.array([step.count for step in steps], np.int64),
        allocated=np.array([_of(step.allocated, device) for step in steps], np.int64),
        reserved=np.array([_of(step.reserved, device) for step in steps], np.int64),
        peak=np.where(known != UNKNOWN, known, _traced_peaks(begin, end, history)),
        retries=np.array([UNKNOWN if step.retries is None else step.retries for step in steps], np.int64),
    )


def _of(values: Sequence[int | None], device: int) -> int:
    value = values[device] if device < len(values) else None
    return UNKNOWN if value is None else value


def _traced_peaks(begin: IntArray, end: IntArray, history: DeviceHistory) -> IntArray:
    """The most that was allocated from `begin` to `end`, where the trace spans all of that."""
    peaks = np.full(len(begin), UNKNOWN, np.int64)
    if not history.entries or not history.trace.timed:
        return peaks
    clock = np.maximum.accumulate(history.trace.time_us)
    for row in np.flatnonzero((begin >= clock[0]) & (end <= clock[-1]) & (end >= begin)).tolist():
        # The curve's value before entry e stands at e.
        first, last = np.searchsorted(clock, (begin[row], end[row] + 1))
        peaks[row] = history.curves.allocated[first : last + 1].max()
    return peaks
