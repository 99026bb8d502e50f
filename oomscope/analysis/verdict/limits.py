"""What this process could reserve at the moment of an OOM: the limit, as far as the snapshot tells."""

from __future__ import annotations

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.rounding import SMALL_BUFFER, page_size
from oomscope.analysis.verdict.records import ProcessLimit
from oomscope.analysis.whatif.releases import refused_sums, release_runs
from oomscope.history import DeviceHistory
from oomscope.model import Snapshot


def outside_bytes(
    snapshot: Snapshot, history: DeviceHistory, *, device_free: int | None = None, reserved: int | None = None
) -> int | None:
    """Bytes of the card that are neither free nor this allocator's, where that is known.

    Args:
        snapshot: the snapshot.
        history: the device's history.
        device_free: the device's free bytes at the instant that is asked about; None: at the end of the snapshot.
        reserved: what this allocator held then.
    """
    recorded = snapshot.recorded.device(history.index)
    total, free = recorded.total, recorded.free
    if device_free is not None and reserved is not None:
        free = device_free
    else:
        reserved = history.layout.reserved
    return None if total is None or free is None else max(total - free - reserved, 0)


def limit_at(
    snapshot: Snapshot, history: DeviceHistory, alloc_size: int, device_free: int | None, entry: int
) -> ProcessLimit:
    """What this process could reserve when a request for `alloc_size` bytes failed at `entry`.

    Recorded by oomscope: the smaller of the cap and the card less what is outside. Else, where the device had less
    free than was asked for, the device was the limit. Else there is a cap, somewhere between the most that was ever
    reserved and the least that was refused.
    """
    reserved = int(history.curves.reserved[entry + 1])
    recorded = _recorded(snapshot, history, device_free, reserved)
    # A limit under which the request would have been served was not the limit.
    if recorded is not None and recorded < reserved + _needed(alloc_size, history.config):
        return ProcessLimit(recorded, recorded, "recorded")
    if device_free is not None and device_free < _needed(alloc_size, history.config):
        return ProcessLimit(reserved + device_free, reserved + device_free, "device")
    return _bracket(snapshot, history, reserved, alloc_size, entry)


def _needed(alloc_size: int, config: AllocatorConfig) -> int:
    """The most that a request takes from the device: expandable segments map whole pages."""
    if not config.expandable_segments:
        return alloc_size
    page = page_size(alloc_size <= SMALL_BUFFER, config)
    return -(-alloc_size // page) * page


def _bracket(snapshot: Snapshot, history: DeviceHistory, reserved: int, alloc_size: int, entry: int) -> ProcessLimit:
    """Between the most ever reserved and the least that a cap refused, over the whole trace.

    A request that was refused at first, and served once cached blocks had been released, counts as well. Where
    the two contradict each other the cap was changed on the way, and only what came before `entry` counts.
    """
    refused = refused_sums(history, release_runs(history.trace, snapshot.stacks))
    most = int(history.curves.reserved.max())
    least = min(reserved + alloc_size, *refused) - 1
    if most <= least:
        return ProcessLimit(most, least, "bracket")
    most = int(history.curves.reserved[: entry + 2].max())
    return ProcessLimit(most, max(reserved + alloc_size - 1, most), "bracket")


def _recorded(snapshot: Snapshot, history: DeviceHistory, device_free: int | None, reserved: int) -> int | None:
    recorded = snapshot.recorded.device(history.index)
    total, cap = recorded.total, recorded.cap
    outside = outside_bytes(snapshot, history, device_free=device_free, reserved=reserved)
    room = total - outside if total is not None and outside is not None else None
    if cap is None:
        return room
    return cap if room is None else min(cap, room)
