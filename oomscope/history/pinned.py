"""What happened in pinned host memory: torch's allocator of it splits nothing, so every figure is as written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oomscope.allocator import AllocatorConfig
from oomscope.history.curves import draw
from oomscope.history.device import DeviceHistory, device_history
from oomscope.model import Device


def pinned_history(host: Device) -> DeviceHistory:
    """Rebuild what happened on `host`, the pinned memory of a snapshot (torch 2.14+).

    Each segment is one block, and an entry has the size of the block, which torch rounded up to a power of two unless
    ``pinned_max_round_threshold_mb`` says otherwise (CachingHostAllocator.h): there is nothing to infer.
    """
    history = device_history(host, AllocatorConfig())
    blocks, rows = host.layout.blocks, history.lifetimes.block
    known = np.append(blocks.size, 0)[rows]
    size = np.where(rows >= 0, known, history.lifetimes.requested)
    return replace(
        history,
        size=size,
        slack=np.zeros(len(size), np.int64),
        curves=draw(history.trace, host.layout, history.lifetimes, size),
    )
