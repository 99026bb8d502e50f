"""What was there when the recording began, rebuilt from what is there at its end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.program import InitialLayout
from oomscope.allocator.rounding import MIN_BLOCK_SIZE, SMALL_BUFFER, SMALL_SIZE, round_size
from oomscope.history.lifetimes import BEFORE, Lifetimes
from oomscope.model import NO_STACK, Action, Blocks, BlockState, Device, IntArray, Layout, Segments, Trace


@dataclass(frozen=True, slots=True)
class _Span:
    """A segment, or a run of mapped pages."""

    address: int
    size: int
    stream: int
    is_large: bool
    is_expandable: bool
    pool: int

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class _Held:
    """A block from before the recording."""

    address: int
    size: int
    requested: int
    state: BlockState
    number: int


def initial_layout(
    device: Device, lifetimes: Lifetimes, number: IntArray, config: AllocatorConfig
) -> InitialLayout | None:
    """The layout before the first entry; None where nothing was reserved then.

    Segments are followed backwards from the end, where they are known. Blocks that lived on to the end have their
    sizes in the snapshot. The others were as large as their rounded request, and kept what was too small to be split
    off: a free block of the large pool is never that small, so the gap behind a block tells.

    Args:
        device: what was recorded.
        lifetimes: its allocations.
        number: int64[lifetimes], the request each stands for.
        config: the recorded settings.
    """
    spans = _spans_before(device)
    if not spans:
        return None
    held = _held(device, lifetimes, number, config)
    starts = [span.address for span in spans]
    members: list[list[_Held]] = [[] for _ in spans]
    for block in held:
        at = bisect_right(starts, block.address) - 1
        if at >= 0 and block.address < spans[at].end:
            members[at].append(block)
    return _layout(spans, members, config)


def _spans_before(device: Device) -> list[_Span]:
    """Segments before the first entry, in address order."""
    segments, trace = device.layout.segments, device.trace
    spans = {
        int(segments.address[row]): _Span(
            int(segments.address[row]),
            int(segments.total_size[row]),
            int(segments.stream[row]),
            bool(segments.is_large[row]),
            bool(segments.is_expandable[row]),
            int(segments.pool[row]),
        )
        for row in range(len(segments))
    }
    changes = (Action.SEGMENT_ALLOC, Action.SEGMENT_FREE, Action.SEGMENT_MAP, Action.SEGMENT_UNMAP)
    for entry in trace.entries(*changes)[::-1].tolist():
        action, address, size = int(trace.action[entry]), int(trace.address[entry]), int(trace.size[entry])
        if action == Action.SEGMENT_ALLOC:
            spans.pop(address, None)
        elif action == Action.SEGMENT_FREE:
            spans[address] = _traced_span(trace, entry, is_expandable=False)
        elif action == Action.SEGMENT_MAP:
            _carve(spans, address, size)
        else:
            _join(spans, _traced_span(trace, entry, is_expandable=True))
    return [spans[address] for address in sorted(spans)]


def _traced_span(trace: Trace, entry: int, *, is_expandable: bool) -> _Span:
    """What an entry that gives memory back tells of it. Segments of 2 MiB are small; pages of 20 MiB are large."""
    size = int(trace.size[entry])
    return _Span(
        address=int(trace.address[entry]),
        size=size,
        stream=int(trace.stream[entry]),
        is_large=size > SMALL_BUFFER,
        is_expandable=is_expandable,
        pool=max(int(trace.pool[entry]), 0),
    )


def _carve(spans: dict[int, _Span], address: int, size: int) -> None:
    """Take the pages [address, address + size) out of the run that holds them."""
    for start, span in list(spans.items()):
        if not (span.is_expandable and start <= address and address + size <= span.end):
            continue
        del spans[start]
        if address > start:
            spans[start] = replace(span, size=address - start)
        if address + size < span.end:
            spans[address + size] = replace(span, address=address + size, size=span.end - address - size)
        return


def _join(spans: dict[int, _Span], span: _Span) -> None:
    """Put mapped pages back, as one run with the runs that touch them."""
    for start, other in list(spans.items()):
        if not other.is_expandable or other.stream != span.stream or (other.end != span.address and start != span.end):
            continue
        del spans[start]
        span = replace(
            other,
            address=min(start, span.address),
            size=other.size + span.size,
        )
    spans[span.address] = span


def _held(device: Device, lifetimes: Lifetimes, number: IntArray, config: AllocatorConfig) -> list[_Held]:
    """The blocks from before the recording, in address order, as large as they are known to be at least."""
    rows = np.flatnonzero(lifetimes.born == BEFORE)
    rows = rows[np.argsort(lifetimes.address[rows], kind="stable")]
    held = []
    for row in rows.tolist():
        requested, block = int(lifetimes.requested[row]), int(lifetimes.block[row])
        size = int(device.layout.blocks.size[block]) if block >= 0 else round_size(requested, config)
        pending = lifetimes.freed[row] == BEFORE
        state = BlockState.ACTIVE_PENDING_FREE if pending else BlockState.ACTIVE_ALLOCATED
        held.append(_Held(int(lifetimes.address[row]), size, requested, state, int(number[row])))
    return held


def _layout(spans: list[_Span], members: list[list[_Held]], config: AllocatorConfig) -> InitialLayout:
    blocks: list[_Held] = []
    segment: list[int] = []
    first_block = [0]
    for at, (span, held) in enumerate(zip(spans, members, strict=True)):
        pieces = _pieces(span, held, config)
        blocks.extend(pieces)
        segment.extend([at] * len(pieces))
        first_block.append(len(blocks))
    layout = Layout(
        Segments(
            address=_ints([span.address for span in spans]),
            total_size=_ints([span.size for span in spans]),
            stream=_ints([span.stream for span in spans]),
            is_large=np.array([span.is_large for span in spans], np.bool_),
            is_expandable=np.array([span.is_expandable for span in spans], np.bool_),
            pool=np.array([span.pool for span in spans], np.int32),
            stack=np.full(len(spans), NO_STACK, np.int32),
            first_block=_ints(first_block),
        ),
        Blocks(
            address=_ints([block.address for block in blocks]),
            size=_ints([block.size for block in blocks]),
            requested_size=_ints([block.requested for block in blocks]),
            state=np.array([block.state for block in blocks], np.uint8),
            stack=np.full(len(blocks), NO_STACK, np.int32),
            segment=_ints(segment),
        ),
    )
    return InitialLayout(layout, _ints([block.number for block in blocks]))


def _pieces(span: _Span, held: Sequence[_Held], config: AllocatorConfig) -> list[_Held]:
    """The blocks of one segment without gaps."""
    pieces: list[_Held] = []
    at = span.address
    for index, block in enumerate(held):
        if block.address > at:
            pieces.append(_free(at, block.address - at))
        following = held[index + 1].address if index + 1 < len(held) else span.end
        gap = following - block.address - block.size
        if _is_kept(gap, block.size, span, config):
            block = replace(block, size=block.size + gap)
        pieces.append(block)
        at = block.address + block.size
    if at < span.end:
        pieces.append(_free(at, span.end - at))
    return pieces


def _is_kept(gap: int, size: int, span: _Span, config: AllocatorConfig) -> bool:
    """Whether what lies behind a block of `size` bytes was left with it, for should_split would not part the two."""
    if gap <= 0:
        return False
    if not span.is_large or span.is_expandable:
        return gap < MIN_BLOCK_SIZE
    return gap <= SMALL_SIZE or (config.max_split_size is not None and size >= config.max_split_size)


def _free(address: int, size: int) -> _Held:
    return _Held(address, size, -1, BlockState.INACTIVE, -1)


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, np.int64)
