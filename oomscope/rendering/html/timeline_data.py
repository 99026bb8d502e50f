"""The numbers behind a timeline, packed for the script of the page: what changed when, exact to the byte.

One column after another, in unsigned LEB128 numbers, the whole deflated: a trace repeats itself, and an entry takes
half a byte. For each instant by how many entries it is later, by how many `tick` microseconds (where the trace has
times), and how many bands changed; then of every change the number of the band and by how much; then for each instant
the changes of pending and of reserved bytes. Changes are signed by zigzag and counted in `unit` bytes.

Every entry that changes anything is an instant. Where that would be too large for a page, times are rounded first; only
then are instants left out, those that show the extremes being kept, and the script says that it shows the nearest.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import IntArray
from oomscope.model.ordering import ascending, numbered, summed
from oomscope.rendering.html.chart_data import TimeAxis, instants, instants_of
from oomscope.rendering.html.lifetime_keys import LifetimeKeys, Rows

MOST_INSTANTS = 400_000
MOST_CHOSEN = 40_000
"""Of a longer trace: what changed between two of its instants does not repeat, and takes some four bytes."""
MOST_BYTES = 90_000
"""Of one packed timeline, before base64; a typical page of 400 kB has room for it."""
TICKS = (1, 10, 100, 1_000, 10_000)
"""Microseconds to which times are rounded, the finest that fits."""
_FEWER = 2
_LEAST_INSTANTS = 60
_SEVEN = 7


@frozen(eq=False)
class Bands:
    """The kinds of live bytes that are told apart.

    Attributes:
        key: int64[lifetimes], the band of each.
        kinds: (category, row or `rows` for all others, phase, part, and the keys of each flame graph) of each band.
        rows: how many rows are told apart.
    """

    key: IntArray
    kinds: tuple[tuple[int, ...], ...]
    rows: int


@frozen(eq=False)
class _BandChanges:
    """What changed when: the instant, the band and the bytes of each change, in order of the instants."""

    row: IntArray
    band: IntArray
    bytes: IntArray


def bands_of(
    device: DeviceFindings, keys: LifetimeKeys, part: IntArray, rows: Rows, boxes: Sequence[IntArray] = ()
) -> Bands:
    """Each lifetime by category, row, phase, part and stack at once: all views come from one set of numbers.

    Args:
        device: whose lifetimes.
        keys: their categories.
        part: int64[lifetimes], the part of the first screen's bar that each belongs to.
        rows: the rows of the table of sites, and what else is told apart.
        boxes: int64[lifetimes] of each flame graph: where a lifetime belongs in it, as `Flame.key` says.
    """
    columns = (keys.category, rows.key, device.phase_of.astype(np.int64), part, *boxes)
    several = (int(column.max(initial=0)) + 1 for column in (part, *boxes))
    extent = (len(CATEGORIES), rows.count + 1, len(PHASES), *several)
    distinct, key = numbered(np.ravel_multi_index(columns, extent))
    kinds = tuple(zip(*(column.tolist() for column in np.unravel_index(distinct, extent)), strict=True))
    return Bands(key, kinds, rows.count)


def packed(
    device: DeviceFindings, bands: Bands, axis: TimeAxis, close: tuple[int, int] | None, marks: list[int],
    most_bytes: int = MOST_BYTES,
) -> dict[str, Any]:  # fmt: skip
    """The instants of a timeline for the script, in at most about `most_bytes` before base64."""
    history = device.history
    changing = _changing(history)
    most = MOST_INSTANTS if len(changing) <= MOST_INSTANTS else MOST_CHOSEN
    while True:
        at = _chosen(device, changing, close, marks, most)
        content, unit, tick = _content(history, bands, axis, at, most_bytes)
        if len(content) <= most_bytes or most <= _LEAST_INSTANTS:
            break
        most = min(most, len(at)) // _FEWER
    return {
        "packed": base64.b64encode(content).decode(),
        "count": len(at),
        "unit": unit,
        "tick": tick,
        "timed": axis.time_us is not None,
        "start": axis.after_zero(int(at[0])) or 0,
        "kinds": [list(kind) for kind in bands.kinds],
        "entries": history.entries,
        "whole": len(at) >= len(changing),
    }


def _changing(history: DeviceHistory) -> IntArray:
    """The entries that change anything."""
    curves = history.curves
    changes = np.zeros(history.entries, np.bool_)
    for curve in (curves.allocated, curves.active, curves.reserved):
        changes |= curve[1:] != curve[:-1]
    return np.flatnonzero(changes)


def _chosen(
    device: DeviceFindings,
    changing: IntArray,
    close: tuple[int, int] | None,
    marks: list[int],
    most: int,
) -> IntArray:
    """At most about `most` entries: all that change anything where those are few, else what shows the extremes."""
    curves, last, found = device.history.curves, device.history.entries - 1, changing
    if len(found) > most:
        inside = found[(found >= close[0]) & (found <= close[1])] if close is not None else found[:0]
        if close is not None and len(inside) > most // 2:
            inside = instants(curves.allocated[1:], *close, buckets=most // 8)
        wide = instants(curves.allocated[1:], 0, last, buckets=most // 8)
        reserved = instants(curves.reserved[1:], 0, last, buckets=most // 24)
        found = np.concatenate([inside, wide, reserved])
    ends = [entry for entry in (0, last, device.at_entry, *marks) if 0 <= entry <= last]
    return ascending(np.concatenate([found, np.array(ends, np.int64)]))


def _content(history: DeviceHistory, bands: Bands, axis: TimeAxis, at: IntArray, most: int) -> tuple[bytes, int, int]:
    """The deflated columns with the unit of their bytes and of their times."""
    curves = history.curves
    changes = _changes(history, bands, at)
    pending = np.diff((curves.active - curves.allocated)[at + 1], prepend=0)
    reserved = np.diff(curves.reserved[at + 1], prepend=0)
    unit = int(np.gcd.reduce(np.concatenate([changes.bytes, pending, reserved]))) or 1
    before = _varints(np.diff(at, prepend=0))
    after = b"".join(
        [
            _varints(np.bincount(changes.row, minlength=len(at))),
            _varints(changes.band),
            *(_varints(_zigzag(column // unit)) for column in (changes.bytes, pending, reserved)),
        ]
    )
    # A quick try tells what is hopeless: the usual one takes three times as long, and never halves its size.
    content, tick = zlib.compress(before + after, 1), TICKS[0]
    if len(content) > 2 * most:
        return content, unit, tick
    time = axis.time_us[at] if axis.time_us is not None else None
    for tick in TICKS if time is not None else TICKS[:1]:
        times = _varints(np.diff((time - time[0]) // tick, prepend=0)) if time is not None else b""
        numbers = before + times + after
        content = zlib.compress(numbers)
        if len(content) <= most:
            break
    return content, unit, tick


def _changes(history: DeviceHistory, bands: Bands, at: IntArray) -> _BandChanges:
    """What begins and ends to be live between two instants, summed for each band."""
    count = max(len(bands.kinds), 1)
    code, change = summed(*_begun_and_ended(history, bands.key, count, at))
    code, change = code[change != 0], change[change != 0]
    return _BandChanges(code // count, code % count, change)


def _begun_and_ended(history: DeviceHistory, band: IntArray, count: int, at: IntArray) -> tuple[IntArray, IntArray]:
    """Of all that changes the instant and its band, ``instant * count + band``; and by how many bytes."""
    begun, ended = instants_of(at, history.lifetimes.born, history.lifetimes.freed)
    is_seen = begun != ended  # not what lives between two instants only
    codes, changes = [], []
    for instant, sign in ((begun, 1), (ended, -1)):
        rows = np.flatnonzero(is_seen & (instant < len(at)))
        codes.append(instant[rows].astype(np.int64) * count + band[rows])
        changes.append(sign * history.size[rows])
    return np.concatenate(codes), np.concatenate(changes)


def _varints(values: IntArray) -> bytes:
    """Unsigned numbers in LEB128."""
    if not len(values):
        return b""
    most = max(1, -(-int(values.max()).bit_length() // _SEVEN))
    octets = np.empty((len(values), most), np.uint8)
    used = np.ones((len(values), most), np.bool_)
    for place in range(most):
        octets[:, place] = values & 0x7F
        values = values >> _SEVEN
        if place + 1 < most:
            used[:, place + 1] = follows = values > 0
            octets[:, place] |= follows.view(np.uint8) << _SEVEN
    content: bytes = octets[used].tobytes()
    return content


def _zigzag(values: IntArray) -> IntArray:
    """Small numbers of either sign as small unsigned ones."""
    return np.where(values < 0, -2 * values - 1, 2 * values)
