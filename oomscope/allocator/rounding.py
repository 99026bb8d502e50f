"""Sizes: what a request is rounded to, what is asked of the device for it, and when a block is split.

Source: round_size, roundup_power2_next_division, get_allocation_size and should_split of
c10/cuda/CUDACachingAllocator.cpp, constants of c10/core/AllocatorConfig.h (torch 2.1 to 2.13). Ascend's allocator
(torch_npu/csrc/core/npu/NPUCachingAllocator.cpp) has the same rules but for the padding and the alignment.
"""

from __future__ import annotations

import numpy as np

from oomscope.allocator.config import POWER2_INTERVALS, AllocatorConfig
from oomscope.model import IntArray

MIN_BLOCK_SIZE = 512
"""kMinBlockSize: all blocks are multiples of it."""
SMALL_SIZE = 1 << 20
"""kSmallSize: larger (rounded) requests belong to the large pool."""
SMALL_BUFFER = 2 << 20
"""kSmallBuffer: the segments of the small pool, and its expandable pages."""
MIN_LARGE_ALLOC = 10 << 20
"""kMinLargeAlloc: requests from here on get a segment of their own size."""
ROUND_LARGE = 2 << 20
"""kRoundLarge: … rounded up to this."""

_FIRST_INTERVAL = 20  # roundup_power2_divisions begins at 1 MiB


def round_size(size: int, config: AllocatorConfig) -> int:
    """The bytes of the block that a request for `size` bytes needs."""
    size += config.padding
    if size < MIN_BLOCK_SIZE:
        return MIN_BLOCK_SIZE
    interval = min(max(size.bit_length() - 1 - _FIRST_INTERVAL, 0), POWER2_INTERVALS - 1)
    divisions = config.roundup_power2_divisions[interval]
    if divisions > 1 and size > MIN_BLOCK_SIZE * divisions:
        return roundup_power2_next_division(size, divisions)
    return -(-size // MIN_BLOCK_SIZE) * MIN_BLOCK_SIZE


def roundup_power2_next_division(size: int, divisions: int) -> int:
    """`size` rounded up to the next of `divisions` (a power of 2) equal steps between two powers of 2."""
    floor = 1 << (size.bit_length() - 1)
    if size == floor:
        return size
    step = floor // divisions
    return 2 * floor if step == 0 else -(-size // step) * step


def round_sizes(sizes: IntArray, config: AllocatorConfig) -> IntArray:
    """`round_size` of every row."""
    sizes = sizes + config.padding
    rounded = np.maximum(-(-sizes // MIN_BLOCK_SIZE), 1) * MIN_BLOCK_SIZE
    table = np.array(config.roundup_power2_divisions, dtype=np.int64)
    if not table.any():
        return rounded
    # Exact up to 2**53 bytes, far beyond any device.
    exponent = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1].astype(np.int64) - 1
    divisions = table[np.clip(exponent - _FIRST_INTERVAL, 0, POWER2_INTERVALS - 1)]
    floor = np.left_shift(np.int64(1), exponent)
    divided = (divisions > 1) & (sizes > MIN_BLOCK_SIZE * divisions) & (sizes != floor)
    # MIN_BLOCK_SIZE * divisions < size leaves steps of at least 512 bytes, so the step is never 0.
    step = np.where(divided, floor // np.maximum(divisions, 1), 1)
    return np.where(divided, -(-sizes // step) * step, rounded)


def is_small(rounded: int) -> bool:
    """Whether a rounded request belongs to the small pool (get_pool)."""
    return rounded <= SMALL_SIZE


def allocation_size(rounded: int, config: AllocatorConfig) -> int:
    """The bytes asked of cudaMalloc for a rounded request that no cached block serves (get_allocation_size)."""
    if rounded <= SMALL_SIZE:
        return SMALL_BUFFER
    if rounded < MIN_LARGE_ALLOC:
        return config.large_segment_size
    return -(-rounded // ROUND_LARGE) * ROUND_LARGE


def page_size(small: bool, config: AllocatorConfig) -> int:
    """The bytes that an expandable segment maps and unmaps as one."""
    return SMALL_BUFFER if small else config.large_segment_size


def should_split(block_size: int, rounded: int, small: bool, config: AllocatorConfig) -> bool:
    """Whether what `rounded` bytes leave of a free block of `block_size` bytes goes back to the pool."""
    remaining = block_size - rounded
    if small or config.expandable_segments:
        return remaining >= MIN_BLOCK_SIZE
    return (config.max_split_size is None or rounded < config.max_split_size) and remaining > SMALL_SIZE
