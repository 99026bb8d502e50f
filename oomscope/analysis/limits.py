"""What this process could reserve at the moment of an OOM: the limit, as far as the snapshot tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.analysis.records import Limit
from oomscope.history import DeviceHistory
from oomscope.model import Snapshot


def device_context(snapshot: Snapshot, device: int) -> Mapping[str, Any]:
    """What the recording by oomscope wrote about `device`; empty where there is nothing."""
    for record in _list((snapshot.context or {}).get("devices")):
        if isinstance(record, Mapping) and record.get("device") == device:
            return record
    return {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def number(record: Mapping[str, Any], key: str) -> int | None:
    """The integer at `key` of a foreign record, None for anything else."""
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def outside_bytes(snapshot: Snapshot, history: DeviceHistory) -> int | None:
    """Bytes of the card that are neither free nor this allocator's at the end of the snapshot, where that is known."""
    context = device_context(snapshot, history.index)
    total, free = number(context, "total"), number(context, "free")
    return None if total is None or free is None else max(total - free - history.layout.reserved, 0)


def limit_at(snapshot: Snapshot, history: DeviceHistory, alloc_size: int, device_free: int | None, entry: int) -> Limit:
    """What this process could reserve when a request for `alloc_size` bytes failed at `entry`.

    Recorded by oomscope: the smaller of the cap and the card less what is outside. Else, where the device had less
    free than was asked for, the device was the limit. Else there is a cap, somewhere between the most that was ever
    reserved and the least that was refused.
    """
    reserved = int(history.curves.reserved[entry + 1])
    recorded = _recorded(snapshot, history)
    if recorded is not None:
        return Limit(recorded, recorded, "recorded")
    if device_free is not None and device_free < alloc_size:
        return Limit(reserved + device_free, reserved + device_free, "device")
    most = int(history.curves.reserved[: entry + 2].max())
    return Limit(most, max(reserved + alloc_size - 1, most), "bracket")


def _recorded(snapshot: Snapshot, history: DeviceHistory) -> int | None:
    context = device_context(snapshot, history.index)
    total, cap = number(context, "total"), number(context, "cap")
    outside = outside_bytes(snapshot, history)
    room = total - outside if total is not None and outside is not None else None
    if cap is None:
        return room
    return cap if room is None else min(cap, room)
