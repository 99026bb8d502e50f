"""Comparing layouts."""

from __future__ import annotations

import numpy as np

from oomscope.model import BlockState, Layout


def assert_same_layout(rebuilt: Layout, real: Layout) -> None:
    """Segment by segment and block by block; stacks of inactive blocks and pools that no entry names do not count."""
    for name in ("address", "total_size", "stream", "is_large", "is_expandable", "first_block"):
        np.testing.assert_array_equal(getattr(rebuilt.segments, name), getattr(real.segments, name), err_msg=name)
    for name in ("address", "size", "state", "segment"):
        np.testing.assert_array_equal(getattr(rebuilt.blocks, name), getattr(real.blocks, name), err_msg=name)
    used = real.blocks.state != BlockState.INACTIVE
    np.testing.assert_array_equal(rebuilt.blocks.requested_size[used], real.blocks.requested_size[used])


def assert_tiled(layout: Layout) -> None:
    """Blocks lie side by side and fill their segments; no two free ones touch."""
    blocks, segments = layout.blocks, layout.segments
    first, last = segments.first_block[:-1], segments.first_block[1:] - 1
    assert (blocks.size > 0).all()
    np.testing.assert_array_equal(blocks.address[first], segments.address)
    np.testing.assert_array_equal(blocks.address[last] + blocks.size[last], segments.address + segments.total_size)
    beside = blocks.segment[1:] == blocks.segment[:-1]
    np.testing.assert_array_equal((blocks.address[:-1] + blocks.size[:-1])[beside], blocks.address[1:][beside])
    free = blocks.state == BlockState.INACTIVE
    assert not (free[1:] & free[:-1] & beside).any()
