"""Which part of a recording a snapshot holds, where it was cut to a window."""

from __future__ import annotations

from oomscope.frozen import frozen


@frozen
class WindowPart:
    """The entries of one device that are left; entry 0 of the part is entry `first` of the recording.

    Attributes:
        device: its CUDA index.
        first, last: entries of the recording, both included; none is left where `last` is below `first`.
        entries: how many the recording has.
        allocates_later: whether the recording has allocations after `last`.
    """

    device: int
    first: int
    last: int
    entries: int
    allocates_later: bool
