"""PyTorch on Apple's Metal (MPS)."""

from __future__ import annotations

import re

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import parse_figure
from oomscope.messages.records import Reading

ANCHORS = (
    b"mps backend out of memory",
    b"invalid buffer size",
    b"failed to allocate",
    b"insufficient memory",
    b"bytes of ndarray",
)


def _in_use(reading: Reading, match: re.Match[str]) -> Reading:
    """Other allocations are this process's own, outside the pool."""
    other = parse_figure(match["other"]) if match["other"] else None
    allocated = reading.figures.get("allocated")
    in_use = allocated + other if allocated and other else None
    advice = ("high_watermark",) if "HIGH_WATERMARK" in match.string[match.end() : match.end() + 80] else ()
    return with_figures(reading, {"process_in_use": in_use}, outside_pool=other, advice=advice)


WORDINGS = (
    Wording(
        "torch-mps",
        "mps.tried",
        "mpsbackendoutofmemory",
        r"""MPS backend out of memory
            (?: \( (?: MPS allocated: <allocated>)? ,? (?: other allocations: <other>)? ,?
            (?: max allowed: <allowed>)? \) )? \.?
            (?: Tried to allocate <requested> (?: on (?P<pool> private | shared) pool)? )?""",
        finish=_in_use,
    ),
    Wording("torch-mps", "mps.buffer", "bytesofndarray", r"total bytes of NDArray > 2\*\*32"),
    Wording("torch-mps", "mps.buffer", "invalidbuffersize", r"Invalid buffer size: <requested>"),
    Wording(
        "torch-mps",
        "mps.metal",
        "mtlbuffer",
        r"Failed to allocate private MTLBuffer for size <requested:bytes>",
    ),
    Wording(
        "torch-mps",
        "mps.metal",
        "insufficientmemory",
        r"""Metal Performance Shaders .{0,200}?
            Insufficient Memory \( 0*8 : kIOGPUCommandBufferCallbackErrorOutOfMemory \)""",
    ),
)
