"""Where a snapshot contradicts itself. What is wrong is named, and the layout is kept as the file has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from oomscope.model import BlockState, BoolArray, IntArray, Layout, Note, note

DECLARED = ("allocated_size", "active_size", "requested_size")
"""What segments say about the sums of their blocks."""


def contradictions(layout: Layout, declared: Mapping[str, IntArray], device: int | None) -> Iterator[Note]:
    """One note for each way in which the segments and blocks of a device do not add up.

    Args:
        layout: in address order.
        declared: the columns of `DECLARED` that the file has, by segment; -1 where a segment lacks one.
        device: whose layout this is; None: the host's.
    """
    yield from _sums(layout, declared, device)
    yield from _gaps(layout, device)
    yield from _overlaps(layout, device)


def _sums(layout: Layout, declared: Mapping[str, IntArray], device: int | None) -> Iterator[Note]:
    blocks, first = layout.blocks, layout.segments.first_block
    allocated, active = blocks.state == BlockState.ACTIVE_ALLOCATED, blocks.is_active
    summed = {
        "total_size": blocks.size,
        "allocated_size": np.where(allocated, blocks.size, 0),
        "active_size": np.where(active, blocks.size, 0),
        "requested_size": np.where(active, blocks.requested_size, 0),
    }
    said_by_file = {"total_size": layout.segments.total_size, **declared}
    for key, said in said_by_file.items():
        total = np.concatenate(([0], np.cumsum(summed[key])))
        found = total[first[1:]] - total[first[:-1]]
        wrong = (said != found) & (said != -1)
        if wrong.any():
            yield note(
                "reading.sums_differ",
                key=key,
                device=device,
                **_share(wrong),
                declared=int(said[wrong].sum()),
                found=int(found[wrong].sum()),
            )


def _gaps(layout: Layout, device: int | None) -> Iterator[Note]:
    """Blocks that do not begin where the one before ends (or their segment begins)."""
    segments, blocks = layout.segments, layout.blocks
    if not len(blocks):
        return
    expected = np.empty_like(blocks.address)
    expected[1:] = (blocks.address + blocks.size)[:-1]
    first = segments.first_block[:-1][np.diff(segments.first_block) > 0]
    expected[first] = segments.address[blocks.segment[first]]
    wrong = expected != blocks.address
    if wrong.any():
        yield note("reading.blocks_apart", device=device, **_share(wrong))


def _overlaps(layout: Layout, device: int | None) -> Iterator[Note]:
    segments = layout.segments
    ends = np.maximum.accumulate(segments.address + segments.total_size)
    wrong = segments.address[1:] < ends[:-1]
    if wrong.any():
        yield note("reading.segments_overlap", device=device, count=int(np.count_nonzero(wrong)))


def _share(wrong: BoolArray) -> dict[str, int]:
    return {"count": int(np.count_nonzero(wrong)), "total": len(wrong)}
