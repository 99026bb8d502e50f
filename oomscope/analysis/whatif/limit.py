"""What the recorded process could reserve, as far as the snapshot tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.rounding import allocation_size, round_size
from oomscope.analysis.whatif.runs import OBTAINS, ReleaseRun, following, reserved_before
from oomscope.history import DeviceHistory
from oomscope.model import Action, IntArray, Snapshot, Trace


@dataclass(frozen=True, slots=True)
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


def recorded_limit(snapshot: Snapshot, device: DeviceHistory, runs: list[ReleaseRun]) -> RecordedLimit:
    """The limit under which `device` was recorded."""
    config = device.config
    total = _context_number(snapshot, device.index, "total")
    known = _from_context(snapshot, device, total)
    if known is not None:
        return known
    reserved = reserved_before(device.trace, device.layout.reserved)
    full = _full_device(device.trace, reserved, config)
    if full is not None:
        return RecordedLimit(Limit(capacity=full, device_total=total), full, full, "device")
    refused = _refused(device.trace, reserved, runs, config)
    if refused is None:
        return RecordedLimit(Limit(device_total=total), None, None, "none")
    low = _served(device.trace, reserved, config)
    return RecordedLimit(Limit(cap=min(low, refused - 1), device_total=total), low, refused - 1, "bracket")


def _from_context(snapshot: Snapshot, device: DeviceHistory, total: int | None) -> RecordedLimit | None:
    """The limit as the dump's own context has it: the cap, and what the device had free."""
    cap = _context_number(snapshot, device.index, "cap")
    free = _context_number(snapshot, device.index, "free")
    if cap is None and free is None:
        return None
    capacity = None if free is None else free + device.layout.reserved
    limit = Limit(cap=cap, capacity=capacity, device_total=total)
    return RecordedLimit(limit, limit.bytes, limit.bytes, "recorded")


def _context_number(snapshot: Snapshot, index: int, key: str) -> int | None:
    for record in (snapshot.context or {}).get("devices") or ():
        if record.get("device") == index and isinstance(record.get(key), int):
            number: int = record[key]
            return number
    return None


def _full_device(trace: Trace, reserved: IntArray, config: AllocatorConfig) -> int | None:
    """What the device could give, where it had less left than a refused request needed."""
    bounds = []
    for entry in trace.entries(Action.OOM).tolist():
        device_free = int(trace.address[entry])
        if device_free < allocation_size(int(trace.size[entry]), config):
            bounds.append(int(reserved[entry]) + device_free)
    return max(bounds, default=None)


def _refused(trace: Trace, reserved: IntArray, runs: list[ReleaseRun], config: AllocatorConfig) -> int | None:
    """The least sum of reserved bytes and a request that was refused at first; None where none was."""
    sums = [
        int(reserved[entry]) + allocation_size(int(trace.size[entry]), config)
        for entry in trace.entries(Action.OOM).tolist()
    ]
    answers = trace.entries(Action.ALLOC, Action.OOM)
    for run in runs:
        if run.by_empty_cache:
            continue
        entry = int(following(np.array([run.end]), answers, len(trace))[0])
        if entry < len(trace) and not config.garbage_collection_threshold:
            requested = round_size(int(trace.size[entry]), config)
            sums.append(int(reserved[run.begin]) + allocation_size(requested, config))
    return min(sums, default=None)


def _served(trace: Trace, reserved: IntArray, config: AllocatorConfig) -> int:
    """The largest sum of reserved bytes and a request that obtained memory.

    A map obtains only the pages that were missing, but the cap is compared with the whole request.
    """
    most = int(reserved.max())
    obtains = np.isin(trace.action, OBTAINS)
    first = np.flatnonzero(obtains & ~np.append(False, obtains[:-1]))
    request = following(first, trace.entries(Action.ALLOC), len(trace))
    for entry, answer in zip(first.tolist(), request.tolist(), strict=True):
        if answer < len(trace) and trace.action[entry] == Action.SEGMENT_MAP:
            requested = round_size(int(trace.size[answer]), config)
            most = max(most, int(reserved[entry]) + allocation_size(requested, config))
    return most
