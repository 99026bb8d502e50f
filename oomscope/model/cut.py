"""What is missing of a file that was cut off."""

from __future__ import annotations

from oomscope.frozen import frozen


@frozen
class Cut:
    """Where a snapshot's file ends too early.

    Attributes:
        size: bytes of the contents before the cut, decompressed.
        part: the top-level key in whose value the file ends; None where it ends between two, or between unknown ones.
        device: the device in whose trace the file ends, where `part` is ``device_traces``.
        segments_whole: whether all segments are before the cut.
        traces_whole: whether all traces are before the cut.
    """

    size: int
    part: str | None
    device: int | None
    segments_whole: bool
    traces_whole: bool
