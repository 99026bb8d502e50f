"""A part of a recording as a snapshot of its own: what a ring would hold that was as large, dumped at its end.

The segments and blocks are those of the window's last entry, and every curve is anchored there; so the baseline, which
is what lived before the first entry, is right without a word of what is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oomscope.analysis.instants import choose_instant
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.analysis.verdict.failed_requests import failed_requests
from oomscope.errors import RequestError
from oomscope.frozen import frozen
from oomscope.model import Action, Device, Snapshot, Trace, WindowPart
from oomscope.units import format_count

_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_LASTING = frozenset({
    "schema_version", "version", "created", "torch", "cuda", "driver", "python", "platform", "allocator", "process",
    "recording", "steps", "sources", "marks", "metadata",
})  # fmt: skip
"""Keys of a dump that hold for earlier instants as well; the others tell of the moment of the dump."""
_LASTING_OF_DEVICE = frozenset({"device", "index", "name", "uuid", "total", "cap"})


@frozen
class EntryRange:
    """Entries of one device, from `first` to `last`, both included; none where `last` is below `first`."""

    first: int
    last: int


def windows(study: SnapshotStudy, text: str, device: int | None = None) -> tuple[EntryRange, ...]:
    """The window that ``FROM:TO`` means, of each device.

    A bound is ``oom``, ``peak``, ``end``, the number of an entry, or a share of the entries such as ``95%``. One that
    is left out is the begin or the end of the recording. An entry is that of `device`, else of the device with the
    longest trace; on other devices the same time is meant.

    Raises:
        RequestError: that is no window, there is no such instant, or other devices' entries have no times.
    """
    begin, colon, end = text.partition(":")
    if not colon or ":" in end:
        raise RequestError(f"{text!r} is no window; write it as FROM:TO, such as 95%:100%, 1000:2000 or peak:")
    if not study.snapshot.devices:
        raise RequestError("The snapshot holds no trace that a window could be cut from.")
    named = None if device is None else study.device(device).device
    first = _bound(study, begin.strip(), named, last=False)
    last = _bound(study, end.strip(), named, last=True)
    found = tuple(_between(device, first, last) for device in study.snapshot.devices)
    if all(window.last < window.first for window in found):
        raise RequestError(f"The window {text} holds no entry of the trace.")
    return found


_Place = tuple[Device, int]
"""An entry of a device."""


def _bound(study: SnapshotStudy, text: str, named: Device | None, *, last: bool) -> _Place | None:
    """The entry that a bound names, as the first or as the last of a window; None: no bound."""
    share = _SHARE.fullmatch(text)
    if not text or (last and text in ("end", "100%")):
        return None
    longest = named or max(study.snapshot.devices, key=lambda device: len(device.trace))
    count = len(longest.trace)
    if text.isdecimal():
        if int(text) >= count:
            end = f"ends at {format_count(count - 1)}" if count else "has none"
            raise RequestError(f"Entry {text} is not in the trace of device {longest.index}, which {end}.")
        return longest, int(text)
    if share is None:
        at = choose_instant(
            [(one.history, failed_requests(one)) for one in study.devices], text, named.index if named else None
        )
        return study.snapshot.device(at.device), at.entry
    if float(share[1]) > 100:
        raise RequestError(f"{text} is more than the whole trace.")
    before = int(np.ceil(count * float(share[1]) / 100 - 1e-9))
    return longest, before - 1 if last else before


def _between(device: Device, first: _Place | None, last: _Place | None) -> EntryRange:
    newest = len(device.trace) - 1
    begin = 0 if first is None else _same_time(device.trace, first, last=False)
    end = newest if last is None else _same_time(device.trace, last, last=True)
    return EntryRange(max(begin, 0), min(end, newest))


def _same_time(trace: Trace, place: _Place, *, last: bool) -> int:
    """The first entry not before, or the last not after the instant `place`."""
    other, entry = place[0].trace, place[1]
    if other is trace:
        return entry
    if not (trace.timed and other.timed and len(other)):
        raise RequestError("The entries have no times, by which the devices could be compared; choose one (--device).")
    time = other.time_us[min(max(entry, 0), len(other) - 1)]
    clock = np.maximum.accumulate(trace.time_us)
    return int(np.searchsorted(clock, time, side="right" if last else "left")) - last


def cut(study: SnapshotStudy, parts: Sequence[EntryRange]) -> Snapshot:
    """The snapshot with only the window `parts` of each device.

    Args:
        study: of the whole snapshot.
        parts: a window for each of its devices.
    """
    snapshot = study.snapshot
    whole = [len(device.trace) for device in snapshot.devices]
    devices = tuple(_device(*pair) for pair in zip(study.devices, parts, strict=True))
    # A ring that is full has lost what came before it.
    wrapped = not all(part.first for part in parts) and study.history_kind == "wrapped"
    rings = [
        max(len(device.trace), 1) for device, part in zip(devices, parts, strict=True) if wrapped or part.first > 0
    ]
    at_end = all(part.last >= count - 1 for part, count in zip(parts, whole, strict=True))
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
        window=() if at_end and not any(part.first for part in parts) else _told(snapshot, parts),
    )


def _told(snapshot: Snapshot, parts: Sequence[EntryRange]) -> tuple[WindowPart, ...]:
    """What is left of each device, for the reader."""
    return tuple(
        WindowPart(
            device=device.index,
            first=part.first,
            last=part.last,
            entries=len(device.trace),
            allocates_later=bool((device.trace.action[part.last + 1 :] == Action.ALLOC).any()),
        )
        for device, part in zip(snapshot.devices, parts, strict=True)
    )


def _device(study: DeviceStudy, part: EntryRange) -> Device:
    whole = study.device
    if not whole.cut and part.last >= len(whole.trace) - 1:
        return replace(whole, trace=sliced(whole.trace, part.first, part.last))  # no need to rebuild the history
    return Device(whole.index, study.history.layout_at(part.last), sliced(whole.trace, part.first, part.last))


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
    """The entries `first` to `last` of `trace`, both included; a copy, which does not keep the others alive."""
    names = (
        "action", "address", "size", "stream", "time_us", "stack", "pool", "compile_context", "user_metadata",
        "internal_metadata",
    )  # fmt: skip
    columns = {name: getattr(trace, name) for name in names}
    kept: dict[str, Any] = {
        name: None if column is None else column[first : max(last + 1, first)].copy()
        for name, column in columns.items()
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
