"""A part of a recording as a snapshot of its own: what a ring would hold that was as large, dumped at its end.

The segments and blocks are those of the window's last entry, and every curve is anchored there; so the baseline, which
is what lived before the first entry, is right without a word of what is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oomscope.analysis.instants import choose_instant
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.analysis.verdict.failed_requests import failed_requests
from oomscope.errors import RequestError
from oomscope.history import DeviceHistory
from oomscope.model import Device, Snapshot, Trace

_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_LASTING = frozenset({
    "schema_version", "version", "created", "torch", "cuda", "driver", "python", "platform", "allocator", "process",
    "recording", "steps", "sources", "marks", "metadata",
})  # fmt: skip
"""Keys of a dump that hold for earlier instants as well; the others tell of the moment of the dump."""
_LASTING_OF_DEVICE = frozenset({"device", "index", "name", "uuid", "total", "cap"})


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Entries of one device, from `first` to `last`, both included; none where `last` is below `first`."""

    first: int
    last: int


def windows(study: SnapshotStudy, text: str) -> tuple[EntryRange, ...]:
    """The window that ``FROM:TO`` means, of each device.

    A bound is ``oom``, ``peak``, ``end``, the number of an entry, or a share of the entries such as ``95%``. One that
    is left out is the begin or the end of the recording. An entry is that of the device with the longest trace; on
    other devices the same time is meant.

    Raises:
        RequestError: that is no window, there is no such instant, or other devices' entries have no times.
    """
    begin, colon, end = text.partition(":")
    if not colon or ":" in end:
        raise RequestError(f"{text!r} is no window; write it as FROM:TO, such as 95%:100%, 1000:2000 or peak:")
    first = _bound(study.devices, begin.strip(), last=False)
    last = _bound(study.devices, end.strip(), last=True)
    found = tuple(_between(device.history, first, last) for device in study.devices)
    if all(window.last < window.first for window in found):
        raise RequestError(f"The window {text} holds no entry of the trace.")
    return found


_Place = tuple[DeviceHistory, int]
"""An entry of a device."""


def _bound(devices: Sequence[DeviceStudy], text: str, *, last: bool) -> _Place | None:
    """The entry that a bound names, as the first or as the last of a window; None: no bound."""
    share = _SHARE.fullmatch(text)
    if not text or (last and text in ("end", "100%")):
        return None
    if share is None:
        at = choose_instant([(one.history, failed_requests(one)) for one in devices], text, None)
        return next(one.history for one in devices if one.index == at.device), at.entry
    if float(share[1]) > 100:
        raise RequestError(f"{text} is more than the whole trace.")
    longest = max((one.history for one in devices), key=lambda history: history.recorded)
    before = int(np.ceil(longest.recorded * float(share[1]) / 100 - 1e-9))
    return longest, before - 1 if last else before


def _between(history: DeviceHistory, first: _Place | None, last: _Place | None) -> EntryRange:
    begin = 0 if first is None else _same_time(history, first, last=False)
    end = history.recorded - 1 if last is None else _same_time(history, last, last=True)
    return EntryRange(max(begin, 0), min(end, history.recorded - 1))


def _same_time(history: DeviceHistory, place: _Place, *, last: bool) -> int:
    """The first entry not before, or the last not after the instant `place`."""
    other, entry = place
    if other is history:
        return entry
    if not (history.trace.timed and other.trace.timed and other.recorded):
        raise RequestError("The entries have no times, by which the devices could be compared; choose one (--device).")
    time = other.trace.time_us[min(max(entry, 0), other.recorded - 1)]
    clock = np.maximum.accumulate(history.trace.time_us)
    return int(np.searchsorted(clock, time, side="right" if last else "left")) - last


def cut(study: SnapshotStudy, parts: Sequence[EntryRange]) -> Snapshot:
    """The snapshot with only the window `parts` of each device.

    Args:
        study: of the whole snapshot.
        parts: a window for each of its devices.
    """
    snapshot = study.snapshot
    histories = study.histories
    devices = tuple(_device(*pair) for pair in zip(histories, parts, strict=True))
    # A ring that is full has lost what came before it.
    wrapped = study.history_kind == "wrapped"
    rings = [
        max(len(device.trace), 1) for device, part in zip(devices, parts, strict=True) if wrapped or part.first > 0
    ]
    at_end = all(part.last >= history.recorded - 1 for history, part in zip(histories, parts, strict=True))
    times = [device.trace.time_us for device in devices if device.trace.timed and len(device.trace)]
    since, until = (min(map(min, times)), max(map(max, times))) if times else (0, np.iinfo(np.int64).max)
    return replace(
        snapshot,
        devices=devices,
        annotations=tuple(
            mark for mark in snapshot.annotations if since <= mark.time_us <= (until, mark.time_us)[at_end]
        ),
        ring_entries=min(rings) if rings else snapshot.ring_entries,
        context=snapshot.context if at_end else _lasting(snapshot.context),
        host=snapshot.host if at_end else None,
    )


def _device(history: DeviceHistory, part: EntryRange) -> Device:
    return Device(history.index, history.layout_at(part.last), sliced(history.trace, part.first, part.last))


def newest(snapshot: Snapshot, entries: int) -> Snapshot:
    """`snapshot` with only the newest `entries` of each device's trace, as a ring of that size would have kept them."""
    devices = tuple(
        replace(device, trace=sliced(device.trace, max(len(device.trace) - entries, 0), len(device.trace) - 1))
        for device in snapshot.devices
    )
    begins = [int(d.trace.time_us[0]) for d in devices if d.trace.timed and len(d.trace)]
    since = min(begins, default=0)
    annotations = tuple(mark for mark in snapshot.annotations if mark.time_us >= since)
    return replace(snapshot, devices=devices, annotations=annotations, ring_entries=entries or None)


def sliced(trace: Trace, first: int, last: int) -> Trace:
    """The entries `first` to `last` of `trace`, both included."""
    names = (
        "action", "address", "size", "stream", "time_us", "stack", "pool", "compile_context", "user_metadata",
        "internal_metadata",
    )  # fmt: skip
    columns = {name: getattr(trace, name) for name in names}
    kept: dict[str, Any] = {
        name: None if column is None else column[first : max(last + 1, first)] for name, column in columns.items()
    }
    forward = {entry - first: lines for entry, lines in trace.forward_stacks.items() if first <= entry <= last}
    return replace(trace, **kept, forward_stacks=forward)


def _lasting(context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if context is None:
        return None
    kept = {key: value for key, value in context.items() if key in _LASTING}
    devices = context.get("devices")
    if isinstance(devices, (list, tuple)):
        kept["devices"] = [
            {key: value for key, value in device.items() if key in _LASTING_OF_DEVICE}
            for device in devices
            if isinstance(device, Mapping)
        ]
    return kept
