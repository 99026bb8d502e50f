"""Where a snapshot contradicts itself. What is wrong is named, and the layout is kept as the file has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from oomscope.model import BlockState, IntArray, Layout
from oomscope.units import format_bytes, plural

DECLARED = ("allocated_size", "active_size", "requested_size")
"""What segments say about the sums of their blocks."""


def contradictions(layout: Layout, declared: Mapping[str, IntArray], place: str) -> Iterator[str]:
    """One sentence for each way in which the segments and blocks of a device do not add up.

    Args:
        layout: in address order.
        declared: the columns of `DECLARED` that the file has, by segment; -1 where a segment lacks one.
        place: whose layout this is: ``device 0``.
    """
    yield from _sums(layout, declared, place)
    yield from _gaps(layout, place)
    yield from _overlaps(layout, place)


def _sums(layout: Layout, declared: Mapping[str, IntArray], place: str) -> Iterator[str]:
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
            yield (
                f"The {key} of {_some(wrong, 'segment')} of {place} contradicts the blocks: "
                f"{_amounts(int(said[wrong].sum()), int(found[wrong].sum()))}; {_HOLDS[key]}."
            )


_HOLDS = {
    "total_size": "reserved follows the segments, all else the blocks",
    "allocated_size": "allocated follows the blocks",
    "active_size": "active follows the blocks",
    "requested_size": "requested follows the blocks",
}


def _amounts(said: int, found: int) -> str:
    if format_bytes(said) == format_bytes(found):
        return f"{said:,} bytes are declared, the blocks add up to {found:,}"
    return f"{format_bytes(said)} are declared, the blocks add up to {format_bytes(found)}"


def _some(wrong: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], noun: str) -> str:
    count = int(np.count_nonzero(wrong))
    return f"the only {noun}" if count == len(wrong) == 1 else f"{count:,} of {plural(len(wrong), noun)}"


def _gaps(layout: Layout, place: str) -> Iterator[str]:
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
        yield f"{_some(wrong, 'block').capitalize()} of {place} do not begin where the block before ends."


def _overlaps(layout: Layout, place: str) -> Iterator[str]:
    segments = layout.segments
    ends = np.maximum.accumulate(segments.address + segments.total_size)
    wrong = segments.address[1:] < ends[:-1]
    if wrong.any():
        count = int(np.count_nonzero(wrong))
        yield f"{plural(count, 'segment')} of {place} begin{'s' if count == 1 else ''} inside another segment."
