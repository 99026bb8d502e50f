"""What the recorded process could reserve, as far as the snapshot tells."""

from __future__ import annotations

import numpy as np

from oomscope.allocator.limits import Limit
from oomscope.allocator.rounding import allocation_size, round_size
from oomscope.analysis.whatif.releases import OBTAINS, ReleaseRun, following, refused_sums
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import Action, RecordedDevice, Snapshot

_LARGEST = 1 << 62
"""Bytes; no card has more."""


@frozen
class RecordedLimit:
    """The limit of the recorded run.

    Attributes:
        limit: what to replay with. Every request that was served lies within it, none that was refused does.
        low, high: bytes; the true limit lies between them. None: unknown on that side.
        source: ``recorded`` (the dump's own context), ``device`` (an out-of-memory error with the device full),
            ``bracket`` (from what was served and what was refused), ``none`` (nothing was ever refused).
    """

    limit: Limit
    low: int | None
    high: int | None
    source: str


def possible_limits(snapshot: Snapshot, device: DeviceHistory, runs: list[ReleaseRun]) -> list[RecordedLimit]:
    """The limits under which `device` may have been recorded, the likeliest first.

    Which of them it was, the replay of the recording tells: what the dump knows of the device is of one moment only,
    and caps can be changed on the way.
    """
    recorded = snapshot.recorded.device(device.index)
    total = recorded.total
    found = [_from_recording(recorded, device), _full_device(device, total), _bracket(device, runs, total)]
    if device.config.garbage_collection_threshold:
        found.append(_from_collections(device, runs, total))
    return [*filter(None, found), RecordedLimit(Limit(device_total=total), None, None, "none")]


def _from_recording(recorded: RecordedDevice, device: DeviceHistory) -> RecordedLimit | None:
    """The limit as the dump's own context has it: the cap, and what the device had free."""
    total, cap, free = recorded.total, recorded.cap, recorded.free
    fraction = device.config.per_process_memory_fraction
    if cap is None and fraction is not None and total is not None:
        cap = int(fraction * total)
    if cap is None and free is None:
        return None
    limit = Limit(cap=cap, capacity=None if free is None else free + device.layout.reserved, device_total=total)
    return RecordedLimit(limit, limit.bytes, limit.bytes, "recorded")


def _full_device(device: DeviceHistory, total: int | None) -> RecordedLimit | None:
    """What the device could give, where it had less left than a refused request needed."""
    trace, bounds = device.trace, []
    for entry in trace.entries(Action.OOM).tolist():
        device_free = int(trace.address[entry])
        if device_free < allocation_size(int(trace.size[entry]), device.config):
            bounds.append(int(device.curves.reserved[entry]) + device_free)
    if not bounds:
        return None
    return RecordedLimit(Limit(capacity=max(bounds), device_total=total), max(bounds), max(bounds), "device")


def _bracket(device: DeviceHistory, runs: list[ReleaseRun], total: int | None) -> RecordedLimit | None:
    """A cap between what was served and what was refused; None where nothing was refused."""
    refused = refused_sums(device, runs)
    if not refused:
        return None
    low, high = _served(device), min(refused) - 1
    return RecordedLimit(Limit(cap=min(low, high), device_total=total), min(low, high), high, "bracket")


def _from_collections(device: DeviceHistory, runs: list[ReleaseRun], total: int | None) -> RecordedLimit | None:
    """The largest cap under which all that was collected was above the threshold."""
    reserved = [int(device.curves.reserved[run.begin]) for run in runs if not run.by_empty_cache]
    if not reserved:
        return None
    most = (min(reserved) - 1) / device.config.garbage_collection_threshold
    if most > _LARGEST:
        return None  # a file that claims a threshold of almost nothing
    cap, low = int(most), _served(device)
    return RecordedLimit(Limit(cap=max(cap, low), device_total=total), low, max(cap, low), "bracket")


def _served(device: DeviceHistory) -> int:
    """The largest sum of reserved bytes and a request that obtained memory.

    A map obtains only the pages that were missing, but the cap is compared with the whole request.
    """
    trace, reserved, config = device.trace, device.curves.reserved, device.config
    if not config.expandable_segments:
        return int(reserved.max())
    most = 0
    obtains = np.isin(trace.action, OBTAINS)
    first = np.flatnonzero(obtains & ~np.append(False, obtains[:-1]))
    request = following(first, trace.entries(Action.ALLOC, Action.OOM), len(trace))
    for entry, answer in zip(first.tolist(), request.tolist(), strict=True):
        if answer < len(trace) and trace.action[answer] == Action.ALLOC:
            requested = round_size(int(trace.size[answer]), config)
            most = max(most, int(reserved[entry]) + allocation_size(requested, config))
    return most
