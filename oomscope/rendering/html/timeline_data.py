"""The numbers behind a timeline, packed for the script of the page: what changed at each instant, exact to the byte.

Every instant is a row of unsigned LEB128 numbers: by how many entries (and microseconds) it is later, how many bands
changed with (number, change) of each, and the changes of pending and of reserved bytes; changes are signed by zigzag
and counted in `unit` bytes. Where a trace has more instants than a page can hold, those that show its extremes are
taken, and the closer look keeps more of them.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import PHASES
from oomscope.model import IntArray
from oomscope.rendering.html.chart_data import TimeAxis, bytes_by_key, instants
from oomscope.rendering.html.lifetime_keys import LifetimeKeys

MOST_INSTANTS = 6_000
MOST_BYTES = 90_000
"""Of one packed timeline, before base64; a typical page of 400 kB has room for it."""
TOLD_SITES = 16
"""Sites with a band of their own; the largest of them have a colour too."""
_FEWER = 2
_LEAST_INSTANTS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """The kinds of live bytes that are told apart.

    Attributes:
        key: int64[lifetimes], the band of each.
        kinds: (category, row of the sites or `rows` for all others, phase) of each band.
        rows: how many rows of the sites are told apart.
    """

    key: IntArray
    kinds: tuple[tuple[int, int, int], ...]
    rows: int


def bands_of(device: DeviceFindings, keys: LifetimeKeys, rows: int = TOLD_SITES) -> Bands:
    """Each lifetime by category, site and phase at once, so that all three views come from one set of numbers."""
    rows = min(rows, keys.rows - 1)
    row = np.minimum(keys.row, rows)
    phase = device.phase_of.astype(np.int64)
    code = (keys.category * (rows + 1) + row) * len(PHASES) + phase
    distinct, key = np.unique(code, return_inverse=True)
    kinds = tuple(
        (one // len(PHASES) // (rows + 1), one // len(PHASES) % (rows + 1), one % len(PHASES))
        for one in distinct.tolist()
    )
    return Bands(key.astype(np.int64), kinds, rows)


def chosen_instants(
    device: DeviceFindings, axis: TimeAxis, close: tuple[int, int] | None, marks: list[int], most: int
) -> IntArray:
    """At most about `most` entries: all that change anything where those are few, else what shows the extremes."""
    curves, last = device.history.curves, device.history.entries - 1
    changes = np.diff(curves.allocated) | np.diff(curves.active) | np.diff(curves.reserved)
    found = np.flatnonzero(changes)
    if len(found) > most:
        inside = found[(found >= close[0]) & (found <= close[1])] if close is not None else found[:0]
        if close is not None and len(inside) > most // 2:
            inside = instants(curves.allocated[1:], axis.x, *close, buckets=most // 8)
        wide = instants(curves.allocated[1:], axis.x, 0, last, buckets=most // 8)
        reserved = instants(curves.reserved[1:], axis.x, 0, last, buckets=most // 24)
        found = np.concatenate([inside, wide, reserved])
    ends = [entry for entry in (0, last, device.at_entry, *marks) if 0 <= entry <= last]
    return np.unique(np.concatenate([found, np.array(ends, np.int64)]))


def packed(
    device: DeviceFindings, bands: Bands, axis: TimeAxis, close: tuple[int, int] | None, marks: list[int],
    most_bytes: int = MOST_BYTES,
) -> dict[str, Any]:  # fmt: skip
    """The instants of a timeline for the script, in at most about `most_bytes` before base64."""
    most = MOST_INSTANTS
    while True:
        at = chosen_instants(device, axis, close, marks, most)
        content, unit = _rows(device, bands, at)
        if len(content) <= most_bytes or most <= _LEAST_INSTANTS:
            break
        most //= _FEWER
    history = device.history
    timed = axis.seconds is not None
    return {
        "packed": base64.b64encode(content).decode(),
        "count": len(at),
        "unit": unit,
        "timed": timed,
        "start": round(float(axis.seconds[at[0]]) * 1e6) if axis.seconds is not None else 0,
        "kinds": [list(kind) for kind in bands.kinds],
        "entries": history.entries,
    }


def _rows(device: DeviceFindings, bands: Bands, at: IntArray) -> tuple[bytes, int]:
    history = device.history
    lifetimes, curves = history.lifetimes, history.curves
    live = bytes_by_key(lifetimes.born, lifetimes.freed, history.size, bands.key, len(bands.kinds), at)
    change = np.diff(live, axis=1, prepend=0)
    pending = np.diff((curves.active - curves.allocated)[at + 1], prepend=0)
    reserved = np.diff(curves.reserved[at + 1], prepend=0)
    unit = int(np.gcd.reduce(np.concatenate([change.ravel(), pending, reserved]))) or 1
    entry = np.diff(at, prepend=0)
    columns: list[IntArray] = [entry]
    if history.trace.timed:
        time = np.maximum.accumulate(history.trace.time_us)[at]
        columns.append(np.diff(time, prepend=time[:1]))
    plain = np.stack(columns, axis=1).tolist()
    where = np.argwhere(change.T != 0)
    starts = np.searchsorted(where[:, 0], np.arange(len(at) + 1)).tolist()
    changed = where[:, 1].tolist()
    signed = _zigzag(change.T[where[:, 0], where[:, 1]] // unit).tolist()
    tail = np.stack([_zigzag(pending // unit), _zigzag(reserved // unit)], axis=1).tolist()
    content = bytearray()
    for number, row in enumerate(plain):
        first, end = starts[number], starts[number + 1]
        numbers = [*row, end - first]
        for place in range(first, end):
            numbers += (changed[place], signed[place])
        for value in (*numbers, *tail[number]):
            while value > 0x7F:
                content.append(value & 0x7F | 0x80)
                value >>= 7
            content.append(value)
    return bytes(content), unit


def _zigzag(values: IntArray) -> IntArray:
    """Small numbers of either sign as small unsigned ones."""
    return np.where(values < 0, -2 * values - 1, 2 * values)
