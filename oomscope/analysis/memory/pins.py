"""Pins: the live blocks that keep stranded bytes from being released.

A *unit* is what the allocator gives back as one: a whole segment, or a page of an expandable segment. Its free bytes
stay reserved as long as one live block lies in it; when every site with a block there moved away, they came free.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.rounding import page_size
from oomscope.analysis.attribution.by_site import Attribution
from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.study import DeviceStudy
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import IntArray, Layout
from oomscope.model.ordering import ascending, numbered

MOST_PINS = 20
MUCH = 0.1
"""Of the stranded bytes: what frees less by itself does not come before what keeps most of them with others."""


@frozen(eq=False)
class _Edges:
    """The units where blocks begin and end, in which alone free bytes can lie beside one: what is between is full.

    So however many pages the segments of a file claim to have, there are at most two units a block.

    Attributes:
        unit: int64[pieces], the place in `stranded` of each such unit of each block.
        row: int64[pieces], the block's lifetime.
        stranded: int64[units], the free bytes of each distinct unit in the default pool; 0 in others.
    """

    unit: IntArray
    row: IntArray
    stranded: IntArray


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
    segment = np.searchsorted(segments.address, history.lifetimes.address[rows], side="right") - 1
    end = segments.address + segments.total_size
    size = history.size[rows]
    # A file may hold blocks of no bytes, which keep nothing.
    inside = (segment >= 0) & (size > 0) & (history.lifetimes.address[rows] + size <= end[segment])
    rows, segment = rows[inside], segment[inside]
    if not len(rows):
        return ()
    return _rank(history, study.attribution, study.sites, _edges(history, layout, rows, segment))


def _units(layout: Layout, config: AllocatorConfig) -> tuple[IntArray, IntArray]:
    """The number of each segment's first unit (and, last, of all units), and the bytes of its units."""
    segments = layout.segments
    page = np.where(segments.is_large, page_size(False, config), page_size(True, config))
    page = np.where(segments.is_expandable, page, segments.total_size)
    units = -(-segments.total_size // np.maximum(page, 1))
    return np.concatenate([[0], np.cumsum(units)]), page


def _edges(history: DeviceHistory, layout: Layout, rows: IntArray, segment: IntArray) -> _Edges:
    """The first and the last unit of each of the blocks `rows`, which lie in `segment`."""
    segments = layout.segments
    first_unit, page = _units(layout, history.config)
    base, inner = first_unit[segment], page[segment]
    offset = history.lifetimes.address[rows] - segments.address[segment]
    end = offset + history.size[rows]
    low, high = offset // inner, (end - 1) // inner
    split = high > low
    number, unit = numbered(np.concatenate([base + low, (base + high)[split]]))
    in_first, in_last = np.minimum(end, (low + 1) * inner) - offset, (end - high * inner)[split]
    used = np.zeros(len(number), np.int64)
    np.add.at(used, unit, np.concatenate([in_first, in_last]))
    # Of a file that lies, one block may be between the ends of another.
    begun = np.searchsorted(np.sort((base + low)[split]), number, side="left")
    ended = np.searchsorted(np.sort((base + high)[split]), number, side="right")
    owner = np.searchsorted(first_unit, number, side="right") - 1
    size = np.minimum(page[owner], segments.total_size[owner] - (number - first_unit[owner]) * page[owner])
    is_free = (begun <= ended) & (segments.pool[owner] == 0)
    return _Edges(unit, np.concatenate([rows, rows[split]]), np.where(is_free, size - used, 0))


def _rank(history: DeviceHistory, attribution: Attribution, sites: SiteTable, edges: _Edges) -> tuple[Pin, ...]:
    stranded, groups = edges.stranded, len(attribution.site)
    pinning = stranded[edges.unit] > 0
    unit, row = edges.unit[pinning], edges.row[pinning]
    if not len(unit):
        return ()
    group = attribution.group[row]
    pairs = np.stack(np.divmod(ascending(unit * groups + group), groups))
    holds = np.bincount(pairs[0], minlength=len(stranded))
    shared, alone = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.add.at(shared, pairs[1], stranded[pairs[0]])
    sole = holds[pairs[0]] == 1
    np.add.at(alone, pairs[1][sole], stranded[pairs[0]][sole])
    units = np.bincount(pairs[1], minlength=groups)
    pins = []
    for chosen, together in _most_freed_first(pairs, stranded, shared, holds, np.bincount(group, minlength=groups)):
        mine = ascending(row[group == chosen])
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
    pairs: IntArray, stranded: IntArray, shared: IntArray, holds: IntArray, blocks: IntArray
) -> Iterator[tuple[int, int]]:
    """Groups in the order in which moving them away frees most, each with what it and those before it free together.

    Greedy: the next is the one whose move completes the most; where none completes much, the one that shares most, and
    of those that share about as much, as all in one large segment do, the one with most blocks: they part the holes.

    Args:
        pairs: int64[2, …], (unit, group) once for each unit and group with a block in it.
        stranded: int64[units], free bytes of each unit.
        shared: int64[groups], stranded bytes in the units of each group.
        holds: int64[units], how many groups keep each unit.
        blocks: int64[groups], its blocks in units that are not full.
    """
    unit, group = pairs
    left, together, least = holds.copy(), 0, max(int(MUCH * stranded.sum()), 1)
    waiting = shared > 0
    for _ in range(min(MOST_PINS, int(np.count_nonzero(waiting)))):
        gain = np.zeros(len(shared), np.int64)
        completes = (left[unit] == 1) & waiting[group]
        np.add.at(gain, group[completes], stranded[unit[completes]])
        much = gain * (gain >= least)
        chosen = int(np.lexsort((blocks, shared * waiting // least, np.where(waiting, much, -1)))[-1])
        together += int(gain[chosen])
        waiting[chosen] = False
        np.subtract.at(left, unit[group == chosen], 1)
        yield chosen, together
