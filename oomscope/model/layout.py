"""Segments and blocks: how a device's reserved memory is divided at one instant."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from oomscope.frozen import frozen
from oomscope.model.arrays import BoolArray, IntArray, StackArray, UInt8Array


class BlockState(IntEnum):
    """The state of a block. ``active`` in torch's statistics is allocated and pending together."""

    INACTIVE = 0
    ACTIVE_ALLOCATED = 1
    ACTIVE_PENDING_FREE = 2
    """free() was called, but another stream may still use the block (`record_stream`), or a capture is underway."""
    OTHER = 3
    """A state this version of oomscope does not know; part of reserved and of nothing else."""


@frozen(eq=False)
class Segments:
    """Memory obtained from the device, in address order; one row a segment.

    An expandable segment stands here as one row for each run of mapped pages.

    Attributes:
        address: int64, start.
        total_size: int64, bytes.
        stream: int64, the stream that owns it; its blocks serve only requests on that stream.
        is_large: whether it belongs to the large pool (rounded requests above 1 MiB) or the small one.
        is_expandable: whether it is part of an expandable segment.
        pool: int32, number in the snapshot's `pools`.
        stack: int32, where it was obtained.
        first_block: int64[segments + 1]; segment `s` consists of the blocks ``first_block[s]:first_block[s + 1]``.
    """

    address: IntArray
    total_size: IntArray
    stream: IntArray
    is_large: BoolArray
    is_expandable: BoolArray
    pool: StackArray
    stack: StackArray
    first_block: IntArray

    def __len__(self) -> int:
        return len(self.address)

    @classmethod
    def empty(cls) -> Segments:
        """No segments."""
        zero, no, none = np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0, np.int32)
        return cls(zero, zero, zero, no, no, none, none, np.zeros(1, np.int64))


@frozen(eq=False)
class Blocks:
    """The pieces that segments are divided into, in address order; one row a block.

    Attributes:
        address: int64, start.
        size: int64, bytes that the allocator gave; a multiple of 512.
        requested_size: int64, bytes that were asked for; -1 unknown; meaningless for inactive blocks.
        state: uint8, `BlockState`.
        stack: int32, where it was allocated.
        segment: int64, row in `Segments`.
    """

    address: IntArray
    size: IntArray
    requested_size: IntArray
    state: UInt8Array
    stack: StackArray
    segment: IntArray

    def __len__(self) -> int:
        return len(self.address)

    @classmethod
    def empty(cls) -> Blocks:
        """No blocks."""
        zero = np.zeros(0, np.int64)
        return cls(zero, zero, zero, np.zeros(0, np.uint8), np.zeros(0, np.int32), zero)

    @property
    def is_active(self) -> BoolArray:
        """Which blocks are allocated or pending."""
        active: BoolArray = (self.state == BlockState.ACTIVE_ALLOCATED) | (self.state == BlockState.ACTIVE_PENDING_FREE)
        return active


@frozen(eq=False)
class Layout:
    """One device's segments and blocks at one instant: at the snapshot's end, or rebuilt for an entry of its trace."""

    segments: Segments
    blocks: Blocks

    @property
    def reserved(self) -> int:
        """Bytes obtained from the device."""
        return int(self.segments.total_size.sum())

    @property
    def allocated(self) -> int:
        """Bytes of blocks in use by the program."""
        return int(self.blocks.size[self.blocks.state == BlockState.ACTIVE_ALLOCATED].sum())

    @property
    def active(self) -> int:
        """Bytes of blocks in use or pending free."""
        return int(self.blocks.size[self.blocks.is_active].sum())
