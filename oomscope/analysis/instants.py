"""Which instant the attribution is about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.analysis.records import At
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.errors import RequestError
from oomscope.history import BEFORE, DeviceHistory
from oomscope.units import format_count

KINDS = ("auto", "oom", "peak", "end")


def choose_instant(
    devices: Sequence[tuple[DeviceHistory, Sequence[FailedRequest]]], at: str | int, device: int | None
) -> At:
    """The instant that `at` names.

    Args:
        devices: histories with their failed requests.
        at: one of `KINDS`, or the number of an entry.
        device: the device to look at; None: the one that `at` leads to.

    Raises:
        RequestError: there is no such instant.
    """
    looked_at = [pair for pair in devices if device in (None, pair[0].index)]
    if not looked_at:
        return At("end", device or 0, BEFORE, None)
    if isinstance(at, int) or at not in KINDS:
        return _entry(looked_at, at)
    if at in ("auto", "oom"):
        chosen = _oom(looked_at)
        if chosen is not None:
            return chosen
        if at == "oom":
            raise RequestError("No OOM is in this snapshot's trace; ask for --at peak or --at end.")
    history = max((pair[0] for pair in looked_at), key=lambda history: int(history.curves.allocated.max()))
    if at == "end" or not history.moves:
        return _at("end", history, history.entries - 1)
    most = int(history.curves.allocated.argmax()) + BEFORE
    # Beyond what the file has of the trace, only the end is known.
    return _at("peak", history, most) if most < history.recorded else _at("end", history, history.entries - 1)


def _oom(devices: Sequence[tuple[DeviceHistory, Sequence[FailedRequest]]]) -> At | None:
    """The last failure that no allocation followed, else the last; by time over all devices."""
    found = [(history, request) for history, requests in devices for request in requests]
    if not found:
        return None
    history, request = max(found, key=lambda pair: (not pair[1].recovered, pair[1].time_us or 0, pair[1].entry))
    return _at("oom", history, request.entry)


def _entry(devices: Sequence[tuple[DeviceHistory, Sequence[FailedRequest]]], at: str | int) -> At:
    history = max((pair[0] for pair in devices), key=lambda history: history.recorded)
    try:
        entry = int(at)
    except ValueError:
        raise RequestError(f"{at!r} is no instant; write oom, peak, end or the number of a trace entry.") from None
    if not BEFORE <= entry < history.recorded:
        last = format_count(history.recorded - 1)
        raise RequestError(f"Entry {entry} is not in the trace of device {history.index}, which ends at {last}.")
    return _at("entry", history, entry)


def _at(kind: str, history: DeviceHistory, entry: int) -> At:
    trace = history.trace
    time = int(trace.time_us[max(entry, 0)]) if trace.timed and len(trace) else None
    return At(kind, history.index, entry, time)


def entry_at(history: DeviceHistory, at: At) -> int:
    """The last entry of `history` at the instant `at`, by time for other devices; the end where there are no times."""
    if history.index == at.device:
        return at.entry
    if at.time_us is None or not history.trace.timed:
        return history.entries - 1
    return int(np.searchsorted(history.trace.time_us, at.time_us, side="right")) - 1
