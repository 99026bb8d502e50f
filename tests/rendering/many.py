"""A snapshot of more sites, segments and stacks than any page should show in full."""

from __future__ import annotations

from functools import cache

from oomscope.analysis import Findings, analyze
from tests.builders import block, frame, loaded, segment

MIB = 1 << 20
SITES = 400


@cache
def many_sites_findings() -> Findings:
    """`SITES` live blocks, each from a site of its own with a deep stack and a hole behind it, the largest first."""
    segments, trace, at = [], [], 0x7F0000000000
    for number in range(SITES):
        outer = [
            frame(f"outer_{depth}_{'y' * 60}", depth, f"/workspace/{'z' * 120}/outer_{number}.py")
            for depth in range(60)
        ]
        frames = [frame(f"layer_{number}", number + 1, f"/workspace/model/part_{number % 7}.py"), *outer]
        size = (SITES - number + 10) * MIB
        segments.append(segment(at, [block(size, frames=frames), block(2 * MIB, "inactive")], frames=frames))
        total = size + 2 * MIB
        for action, count in (("segment_alloc", total), ("alloc", size)):
            trace.append({"action": action, "addr": at, "size": count, "stream": 0, "frames": frames})
        at += total + 64 * MIB
    for number, item in enumerate(trace):
        item["time_us"] = 1_700_000_000_000_000 + 1000 * number
    return analyze(loaded(segments, [trace]), whatif=False)
