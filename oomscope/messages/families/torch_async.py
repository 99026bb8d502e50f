"""PyTorch with the backend cudaMallocAsync."""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording
from oomscope.messages.records import Reading

ANCHORS = (b"allocation on device", b"cudamallocasyncallocator.cpp")

_NEXT = r"[-/|,;•*–—]{0,3}"
"""What people put between the lines of the list where they write it on one."""


def _on_card(reading: Reading, match: re.Match[str]) -> Reading:
    """The device, where a logger has put its own words instead of the exception's name."""
    return replace(reading, device=int(match["card"])) if match["card"] else reading


WORDINGS = (
    Wording(
        "torch-async",
        "async.limit",
        "allocationondevice",
        rf"""Allocation on device (?P<device>\d{{0,4}}) [\x00-\x1f]? would exceed allowed memory \.?
            (?: \(out of memory\))? (?: {_NEXT} Currently allocated: <allocated>)?
            (?: {_NEXT} Requested: <requested>)? (?: {_NEXT} Device limit: <total>)?
            (?: {_NEXT} Free \(according to CUDA\): <free>)?
            (?: {_NEXT} PyTorch limit \(set by user-supplied memory fraction\): <allowed>)?""",
    ),
    Wording(
        "torch-async",
        "async.cut",
        "allocationondevice",
        r"""(?: Error | Exception): Allocation on device (?P<device>\d{0,4}) (?!w)
          | (?-i: Allocation on device) (?P<card>\d{0,4}) (?! (?-i: [a-z,.:;=(]) )""",
        finish=_on_card,
    ),
    Wording(
        "torch-async",
        "async.assert",
        "cudamallocasyncallocator.cpp",
        r"INTERNAL ASSERT FAILED at [\"'\\]{1,4} [^\"']{0,200}? CUDAMallocAsyncAllocator\.cpp",
    ),
)
