"""Which rule of the allocator a replay departs from the recording by: told from the first entry that differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oomscope.allocator.conf_string import read_understood, tokenize
from oomscope.allocator.replay import Replay
from oomscope.allocator.torch_releases import LATEST
from oomscope.analysis.whatif.releases import OBTAINS, RETURNS
from oomscope.history import DeviceHistory
from oomscope.model import Action

_CHOSEN = "mallocWithAddress"
_RESERVE = "expandable_segments_reserve"


def departing_rule(
    device: DeviceHistory, recorded: Replay, entry: int, settings: Mapping[str, Any] | None
) -> str | None:
    """The slug of one of `RULES` that decides what differs at `entry`; None where none does.

    What is known not to be modelled goes first: it explains every difference behind it.

    Args:
        device: what was recorded.
        recorded: the replay of the recorded setting.
        entry: the first entry that differs.
        settings: torch's ``allocator_settings``.
    """
    return _not_modelled(device, entry, settings) or _by_entry(device, recorded, entry)


def _not_modelled(device: DeviceHistory, entry: int, settings: Mapping[str, Any] | None) -> str | None:
    trace = device.trace
    if trace.internal_metadata is not None:
        number = next((at for at, text in enumerate(trace.texts) if text == _CHOSEN), None)
        if number is not None and np.any(trace.internal_metadata[: entry + 1] == number):
            return "chosen_address"
    conf = str((settings or {}).get("PYTORCH_CUDA_ALLOC_CONF") or "")
    if _RESERVE in conf and device.config.expandable_segments:
        return "reserve"
    return "unknown_setting" if read_understood(tokenize(conf), LATEST)[1] else None


def _by_entry(device: DeviceHistory, recorded: Replay, entry: int) -> str | None:
    trace = device.trace
    action = int(trace.action[entry])
    if action == Action.ALLOC:
        return "free_block"
    if action == Action.OOM:
        return "limit"
    if action in (Action.SEGMENT_MAP, Action.SEGMENT_UNMAP):
        return "expandable"
    if action == Action.SEGMENT_FREE:
        return "release"
    if action != Action.SEGMENT_ALLOC:
        return None
    place = int(np.searchsorted(trace.entries(*OBTAINS, *RETURNS), entry))
    events = recorded.segment_events
    if place >= len(events) or events[place][0] != Action.SEGMENT_ALLOC:
        return "new_segment"
    return "segment_size" if events[place][2] != int(trace.size[entry]) else "free_block"
