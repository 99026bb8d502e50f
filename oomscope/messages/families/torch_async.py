"""PyTorch with the backend cudaMallocAsync."""

from __future__ import annotations

from oomscope.messages.families.wording import Wording

ANCHORS = (b"allocation on device",)

WORDINGS = (
    Wording(
        "torch-async",
        "async.limit",
        "allocationondevice",
        r"""Allocation on device (?P<device>\d{0,4}) [\x00-\x1f]? would exceed allowed memory \.? \(out of memory\)
            (?: Currently allocated: <allocated>)? (?: Requested: <requested>)? (?: Device limit: <total>)?
            (?: Free \(according to CUDA\): <free>)?
            (?: PyTorch limit \(set by user-supplied memory fraction\): <allowed>)?""",
    ),
    Wording(
        "torch-async",
        "async.cut",
        "allocationondevice",
        r"(?: Error | Exception): Allocation on device (?P<device>\d{0,4}) (?!w)",
    ),
)
