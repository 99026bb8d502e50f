"""The segment map: the segments with most stranded bytes as bars in true proportion, blocks in place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.memory.fragmentation import free_bytes
from oomscope.analysis.records import CATEGORIES
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import BlockState, IntArray, Layout, PoolId
from oomscope.model.arrays import BoolArray, address_text
from oomscope.rendering.html.lifetime_keys import LifetimeKeys
from oomscope.rendering.html.notable_pins import notable_pins

MOST_BARS = 20
LEAST = 500
"""A segment with less than one in so many stranded bytes has no bar of its own."""
MOST_SEGMENTS = 600
"""So many segments are looked at; those that look alike share a bar."""

MOST_PIECES = 1600
_RESOLUTION = 0.0012
"""Pieces narrower than this share of the longest bar are drawn together with their neighbours."""


@frozen
class Piece:
    """Neighbouring blocks of one kind, a category or ``pending``; `x` and `width` in per cent of the longest bar."""

    x: str
    width: str
    kind: str
    pin: bool


@frozen
class SegmentBar:
    """Segments that look alike, most often one. All but `alike` is said of each of them; `address` is the first's."""

    address: str
    alike: int
    width: str
    size: int
    free: int
    stranded: int
    largest: int
    holes: int
    pool: PoolId
    stream: int
    pieces: tuple[Piece, ...]


@frozen
class SegmentMap:
    """The segments shown, and how many more hold free bytes that cannot be released; whether any block is capped."""

    bars: tuple[SegmentBar, ...]
    capped: bool
    others: int
    others_stranded: int


def segment_map(device: DeviceFindings, keys: LifetimeKeys, pools: tuple[PoolId, ...]) -> SegmentMap | None:
    """The segments with the most stranded or walled bytes at the instant of attribution; None where there are none."""
    history = device.history
    layout = history.layout_at(device.at_entry)
    free = free_bytes(layout, history.config)
    segments = layout.segments
    kept = _sum_by(layout, free.stranded + free.walled)
    worst = np.argsort(-kept, kind="stable")
    worst = worst[kept[worst] > 0]
    if not len(worst):
        return None
    kinds, pins = _kinds(device, keys, layout)
    longest = max(int(segments.total_size[worst[:MOST_SEGMENTS]].max()), 1)
    inactive = _sum_by(layout, free.inactive)
    bars: dict[tuple[object, ...], SegmentBar] = {}
    others, others_kept, budget, total = 0, 0, MOST_PIECES, int(kept.sum())
    for segment in worst[:MOST_SEGMENTS].tolist():
        first, last = int(segments.first_block[segment]), int(segments.first_block[segment + 1])
        pieces = _pieces(layout, first, last, int(segments.address[segment]), longest, kinds, pins)
        holes, size = free.inactive[first:last], int(segments.total_size[segment])
        key = (size, int(kept[segment]), int(inactive[segment]), pieces)
        if key in bars:
            bars[key] = replace(bars[key], alike=bars[key].alike + 1)
        elif len(bars) < MOST_BARS and len(pieces) <= budget and (not bars or kept[segment] * LEAST >= total):
            budget -= len(pieces)
            bars[key] = SegmentBar(
                address=address_text(int(segments.address[segment])),
                alike=1,
                width=_percent(size, longest),
                size=size,
                free=int(inactive[segment]),
                stranded=int(kept[segment]),
                largest=int(holes.max(initial=0)),
                holes=int(np.count_nonzero(holes)),
                pool=pools[int(segments.pool[segment])],
                stream=int(segments.stream[segment]),
                pieces=pieces,
            )
        else:
            others, others_kept = others + 1, others_kept + int(kept[segment])
    rest = worst[MOST_SEGMENTS:]
    capped = any(piece.pin for bar in bars.values() for piece in bar.pieces)
    return SegmentMap(tuple(bars.values()), capped, others + len(rest), others_kept + int(kept[rest].sum()))


def _sum_by(layout: Layout, values: IntArray) -> IntArray:
    sums = np.zeros(len(layout.segments), np.int64)
    np.add.at(sums, layout.blocks.segment, values)
    return sums


def _kinds(device: DeviceFindings, keys: LifetimeKeys, layout: Layout) -> tuple[list[str], BoolArray]:
    """For each block the kind it is drawn as ("" for free), and whether it is a pin smaller than the free bytes beside.

    A large block next to a sliver keeps little from being used; only where the hole is the larger part is a mark due.
    """
    blocks, rows = layout.blocks, _rows_of_blocks(device.history, device.at_entry, layout)
    found = rows >= 0
    category = np.where(found, keys.category[rows] if len(keys.category) else 0, CATEGORIES.index("unknown"))
    kinds = [CATEGORIES[number] for number in category.tolist()]
    for number in np.flatnonzero(blocks.state == BlockState.ACTIVE_PENDING_FREE).tolist():
        kinds[number] = "pending"
    for number in np.flatnonzero(blocks.state == BlockState.INACTIVE).tolist():
        kinds[number] = ""
    pinning = {(pin.site, pin.caller, pin.label) for pin in notable_pins(device)}
    is_pin = np.array([(use.site, use.caller, use.label) in pinning for use in device.sites] + [False], np.bool_)
    owner = keys.row[rows] if len(keys.row) else np.zeros(len(rows), np.int64)
    return kinds, found & is_pin[owner] & (blocks.size < _free_beside(layout))


def _free_beside(layout: Layout) -> IntArray:
    """For each block the free bytes that touch it within its segment."""
    blocks = layout.blocks
    free = np.where(blocks.state == BlockState.INACTIVE, blocks.size, 0)
    joined = blocks.segment[1:] == blocks.segment[:-1]
    joined &= blocks.address[:-1] + blocks.size[:-1] == blocks.address[1:]
    beside = np.zeros(len(blocks), np.int64)
    beside[1:] += np.where(joined, free[:-1], 0)
    beside[:-1] += np.where(joined, free[1:], 0)
    return beside


def _rows_of_blocks(history: DeviceHistory, entry: int, layout: Layout) -> IntArray:
    """The lifetime of each block, -1 for free ones."""
    live = np.flatnonzero(history.lifetimes.active_at(entry))
    if not len(live):
        return np.full(len(layout.blocks), -1, np.int64)
    live = live[np.argsort(history.lifetimes.address[live], kind="stable")]
    address = history.lifetimes.address[live]
    at = np.minimum(np.searchsorted(address, layout.blocks.address), len(live) - 1)
    return np.where((address[at] == layout.blocks.address) & (layout.blocks.state != BlockState.INACTIVE), live[at], -1)


def _pieces(
    layout: Layout, first: int, last: int, start: int, longest: int, kinds: list[str], pins: BoolArray
) -> tuple[Piece, ...]:
    """Blocks as pieces; neighbours of one kind are one piece, and what is too narrow to see joins its neighbour."""
    blocks = layout.blocks
    runs: list[list[int | str | bool]] = []
    for block in range(first, last):
        kind, pin = kinds[block], bool(pins[block])
        offset, size = int(blocks.address[block]) - start, int(blocks.size[block])
        if not kind:
            continue
        joins = bool(runs) and offset - int(runs[-1][0]) - int(runs[-1][1]) < longest * _RESOLUTION
        same = joins and (runs[-1][2], runs[-1][3]) == (kind, pin)
        if same or (joins and min(size, int(runs[-1][1])) < longest * _RESOLUTION):
            run = runs[-1]
            if size > int(run[1]):
                run[2] = kind
            run[1], run[3] = offset + size - int(run[0]), bool(run[3]) or pin
        else:
            runs.append([offset, size, kind, pin])
    return tuple(
        Piece(
            x=_percent(int(offset), longest),
            width=_percent(max(int(size), round(longest * 0.0008)), longest),
            kind=str(kind),
            pin=bool(pin),
        )
        for offset, size, kind, pin in runs
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}".rstrip("0").rstrip(".")
