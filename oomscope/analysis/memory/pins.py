"""Pins: the live blocks that keep stranded bytes from being released.

A *unit* is what the allocator gives back as one: a whole segment, or a page of an expandable segment. Its free bytes
stay reserved as long as one live block lies in it; when every site with a block there moved away, they came free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.rounding import page_size
from oomscope.analysis.attribution.by_site import Attribution
from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.study import DeviceStudy
from oomscope.history import DeviceHistory
from oomscope.model import IntArray, Layout

MOST_PINS = 20


@dataclass(frozen=True, slots=True, eq=False)
class _BlockPieces:
    """Live blocks cut at unit bounds; one row a piece."""

    unit: IntArray
    row: IntArray
    """The lifetime."""


_MOST_UNITS = 1 << 24
"""32 TiB of small pages: more than any device has, and enough for a file's claim to fill the memory."""


def find_pins(study: DeviceStudy, entry: int, layout: Layout) -> tuple[Pin, ...]:
    """The sites that keep stranded bytes once `entry` has happened, in the order in which moving them frees most.

    Args:
        study: of the device.
        entry: the instant that it is about.
        layout: the segments and blocks then.
    """
    history = study.history
    rows = np.flatnonzero(history.lifetimes.active_at(entry))
    segments = layout.segments
    if not len(rows) or not len(segments):
        return ()
    first_unit, page = _units(layout, history.config)
    if first_unit[-1] > _MOST_UNITS:
        return ()
    segment = np.searchsorted(segments.address, history.lifetimes.address[rows], side="right") - 1
    end = segments.address + segments.total_size
    size = history.size[rows]
    # A file may hold blocks of no bytes, which keep nothing.
    inside = (segment >= 0) & (size > 0) & (history.lifetimes.address[rows] + size <= end[segment])
    rows, segment = rows[inside], segment[inside]
    if not len(rows):
        return ()
    pieces = _cut(history, rows, segment, segments.address, first_unit, page)
    stranded = _stranded(history, layout, rows, segment, first_unit, page)
    return _rank(history, study.attribution, study.sites, pieces, stranded)


def _units(layout: Layout, config: AllocatorConfig) -> tuple[IntArray, IntArray]:
    """The number of each segment's first unit (and, last, of all units), and the bytes of its units."""
    segments = layout.segments
    page = np.where(segments.is_large, page_size(False, config), page_size(True, config))
    page = np.where(segments.is_expandable, page, segments.total_size)
    units = -(-segments.total_size // np.maximum(page, 1))
    return np.concatenate([[0], np.cumsum(units)]), page


def _cut(
    history: DeviceHistory, rows: IntArray, segment: IntArray, start: IntArray, first_unit: IntArray, page: IntArray
) -> _BlockPieces:
    offset = history.lifetimes.address[rows] - start[segment]
    low = offset // page[segment]
    high = (offset + history.size[rows] - 1) // page[segment]
    count = high - low + 1
    owner = np.repeat(np.arange(len(rows)), count)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    unit = np.minimum(first_unit[segment[owner]] + low[owner] + step, first_unit[-1] - 1)
    return _BlockPieces(unit, rows[owner])


def _stranded(
    history: DeviceHistory, layout: Layout, rows: IntArray, segment: IntArray, first_unit: IntArray, page: IntArray
) -> IntArray:
    """Free bytes of each unit that holds a live block in the default pool; 0 elsewhere."""
    segments = layout.segments
    units = int(first_unit[-1])
    owner = np.repeat(np.arange(len(segments)), np.diff(first_unit))
    step = np.arange(units) - first_unit[owner]
    size = np.minimum(page[owner], segments.total_size[owner] - step * page[owner])
    used = np.zeros(units, np.int64)
    offset = history.lifetimes.address[rows] - segments.address[segment]
    end = offset + history.size[rows]
    low, high = offset // page[segment], (end - 1) // page[segment]
    base = first_unit[segment]
    inner = page[segment]
    np.add.at(used, base + low, np.minimum(end, (low + 1) * inner) - offset)
    split = high > low
    np.add.at(used, (base + high)[split], (end - high * inner)[split])
    # Units between the first and the last of a block are full: they hold nothing free.
    full_from, full_to = (base + low + 1)[split], (base + high)[split]
    fill = np.zeros(units + 1, np.int64)
    np.add.at(fill, full_from, 1)
    np.subtract.at(fill, full_to, 1)
    used = np.where(np.cumsum(fill)[:-1] > 0, size, used)
    return np.where((used > 0) & (segments.pool[owner] == 0), size - used, 0)


def _rank(
    history: DeviceHistory,
    attribution: Attribution,
    sites: SiteTable,
    pieces: _BlockPieces,
    stranded: IntArray,
) -> tuple[Pin, ...]:
    group = attribution.group[pieces.row]
    pairs = np.unique(np.stack([pieces.unit, group]), axis=1)
    pairs = pairs[:, stranded[pairs[0]] > 0]
    if not pairs.shape[1]:
        return ()
    groups = len(attribution.site)
    holds = np.bincount(pairs[0], minlength=len(stranded))
    shared, alone = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.add.at(shared, pairs[1], stranded[pairs[0]])
    sole = holds[pairs[0]] == 1
    np.add.at(alone, pairs[1][sole], stranded[pairs[0]][sole])
    units = np.bincount(pairs[1], minlength=groups)
    pinning = np.isin(pieces.unit, np.flatnonzero(stranded > 0))
    pins = []
    for chosen, together in _most_freed_first(pairs, stranded, shared, holds):
        mine = np.unique(pieces.row[pinning & (group == chosen)])
        pins.append(
            Pin(
                site=sites.location(int(attribution.site[chosen])),
                caller=sites.location(int(attribution.caller[chosen])),
                label=attribution.label[chosen],
                live_bytes=int(history.size[mine].sum()),
                blocks=len(mine),
                stranded_bytes=int(shared[chosen]),
                alone_bytes=int(alone[chosen]),
                together_bytes=together,
                segments=int(units[chosen]),
                smallest=int(history.size[mine].min()),
                largest=int(history.size[mine].max()),
                oldest_entry=int(history.lifetimes.born[mine].min()),
            )
        )
    return tuple(pins)


def _most_freed_first(
    pairs: IntArray, stranded: IntArray, shared: IntArray, holds: IntArray
) -> Iterator[tuple[int, int]]:
    """Groups in the order in which moving them away frees most, each with what it and those before it free together.

    Greedy: the next is the one whose move completes the most; where none completes anything, the one that shares most.

    Args:
        pairs: int64[2, …], (unit, group) once for each unit and group with a block in it.
        stranded: int64[units], free bytes of each unit.
        shared: int64[groups], stranded bytes in the units of each group.
        holds: int64[units], how many groups keep each unit.
    """
    unit, group = pairs
    left, together = holds.copy(), 0
    waiting = shared > 0
    for _ in range(min(MOST_PINS, int(np.count_nonzero(waiting)))):
        gain = np.zeros(len(shared), np.int64)
        completes = (left[unit] == 1) & waiting[group]
        np.add.at(gain, group[completes], stranded[unit[completes]])
        chosen = int(np.lexsort((shared * waiting, np.where(waiting, gain, -1)))[-1])
        together += int(gain[chosen])
        waiting[chosen] = False
        np.subtract.at(left, unit[group == chosen], 1)
        yield chosen, together
