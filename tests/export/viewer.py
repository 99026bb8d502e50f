"""What torch's own viewer draws of a snapshot: its rules, one entry at a time, in plain containers.

It starts from the final segments and goes backwards through the trace; a block that was freed has the size of the
entry that freed it, one that is still there the size that was asked for (torch/utils/viz/MemoryViz.js).
"""

from __future__ import annotations

from typing import Any

LIVE = ("active_allocated", "active_pending_free")


def drawn(snapshot: dict[str, Any], device: int) -> tuple[list[int], list[int]]:
    """Bytes asked for by live blocks, and reserved bytes: at the start, and after each entry of the trace."""
    reserved, blocks = 0, {}
    for segment in snapshot["segments"]:
        if segment["device"] != device:
            continue
        reserved += segment["total_size"]
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] in LIVE:
                blocks[address] = block["requested_size"]
            address += block["size"]
    held, got = [sum(blocks.values())], [reserved]
    live = held[0]
    for entry in reversed(snapshot["device_traces"][device]):
        action, size = entry["action"], entry["size"]
        if action == "free_completed":
            assert entry["addr"] not in blocks, "freed where another block lives"
            blocks[entry["addr"]] = size
            live += size
        elif action == "alloc":
            live -= blocks.pop(entry["addr"])
        elif action in ("segment_alloc", "segment_map"):
            reserved -= size
        elif action in ("segment_free", "segment_unmap"):
            reserved += size
        held.append(live)
        got.append(reserved)
    return held[::-1], got[::-1]
