"""Live bytes under the names that the program gave: ranges, metadata, compiled regions, annotated tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.said.naming import MOST_DEEP
from oomscope.analysis.said.range_max import range_max
from oomscope.analysis.said.range_names import is_programs, unnumbered
from oomscope.analysis.said.ranges import NO_RANGE, Ranges
from oomscope.analysis.said.records import NamedUse
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import Action, IntArray
from oomscope.model.arrays import StackArray

MOST_NAMES = 40
"""Rows of each kind, largest first; what is left out is under no name here, but in every other table."""
_WITHIN = " > "
_NOTHING = -1


def named_uses(history: DeviceHistory, ranges: Ranges, entry: int) -> tuple[NamedUse, ...]:
    """Live bytes by name once `entry` has happened; kind by kind, largest first.

    A block belongs to the innermost range of the program's own in which it was allocated. Kinds overlap: one block may
    be in a range, in a compiled region and under metadata.
    """
    lifetimes, trace = history.lifetimes, history.trace
    live = np.flatnonzero(lifetimes.allocated_at(entry))
    born = lifetimes.born[live]
    during = born > BEFORE
    size = history.size[live]
    found = [*_ranges(history, ranges, np.where(during, born, 0), during, size)]
    for kind, column in (("metadata", trace.user_metadata), ("compiled", trace.compile_context)):
        if column is not None:
            number = np.where(during, column[np.where(during, born, 0)], _NOTHING)
            found += _rows(kind, trace.texts, number, size)
    found += _rows("annotation", trace.texts, _annotated(history, entry)[live], size)
    return tuple(found)


def _rows(kind: str, names: tuple[str, ...], number: StackArray | IntArray, size: IntArray) -> Iterator[NamedUse]:
    for name, total, blocks in _largest(number, size):
        yield NamedUse(kind, names[name], total, blocks)


def _largest(number: StackArray | IntArray, size: IntArray) -> list[tuple[int, int, int]]:
    """Of each number its bytes and blocks, the largest first; those of `_NOTHING` are left out."""
    known = number >= 0
    distinct, inverse = np.unique(number[known], return_inverse=True)
    total = np.zeros(len(distinct), np.int64)
    np.add.at(total, inverse, size[known])
    blocks = np.bincount(inverse, minlength=len(distinct))
    order = np.argsort(-total, kind="stable")[:MOST_NAMES]
    return list(zip(distinct[order].tolist(), total[order].tolist(), blocks[order].tolist(), strict=True))


def _ranges(
    history: DeviceHistory, ranges: Ranges, born: IntArray, during: np.ndarray, size: IntArray
) -> Iterator[NamedUse]:
    if not len(ranges):
        return
    paths, path_of = _paths(ranges)
    number = np.where(during, np.append(path_of, _NOTHING)[ranges.innermost[born]], _NOTHING)
    live = {path: (total, blocks) for path, total, blocks in _largest(number, size)}
    peak, rise = _heights(history, ranges)
    entered = np.flatnonzero(path_of >= 0)
    own = np.array([is_programs(ranges.names[row]) for row in entered.tolist()], np.bool_)
    entered = entered[own]  # a library's range inside one of the program's is no entry into that
    times = np.bincount(path_of[entered], minlength=len(paths))
    highest, steepest = np.zeros(len(paths), np.int64), np.zeros(len(paths), np.int64)
    np.maximum.at(highest, path_of[entered], peak[entered])
    np.maximum.at(steepest, path_of[entered], rise[entered])
    order = sorted(range(len(paths)), key=lambda path: (-live.get(path, (0, 0))[0], -int(highest[path])))
    for path in order[:MOST_NAMES]:
        total, blocks = live.get(path, (0, 0))
        yield NamedUse("range", paths[path], total, blocks, int(times[path]), int(highest[path]), int(steepest[path]))


def _paths(ranges: Ranges) -> tuple[tuple[str, ...], IntArray]:
    """The distinct ways to ranges of the program's own, and int64[ranges]: the number of each range's; -1 for none."""
    numbers: dict[tuple[int, str], int] = {}
    ways: list[tuple[str, ...]] = []
    path_of = np.full(len(ranges), _NOTHING, np.int64)
    for row, (name, parent) in enumerate(zip(ranges.names, ranges.parent.tolist(), strict=True)):
        around = int(path_of[parent]) if parent != NO_RANGE else _NOTHING
        if not is_programs(name):
            path_of[row] = around
            continue
        key = (around, unnumbered(name))
        if key not in numbers:
            numbers[key] = len(ways)
            outer = ways[around] if around != _NOTHING else ()
            ways.append((*outer, key[1]) if len(outer) < MOST_DEEP else outer)
        path_of[row] = numbers[key]
    return tuple(_WITHIN.join(way) for way in ways), path_of


def _heights(history: DeviceHistory, ranges: Ranges) -> tuple[IntArray, IntArray]:
    """For each range the most that was allocated in it, and by how much that is above what was at its beginning."""
    allocated = history.curves.allocated
    begin = np.minimum(ranges.begin, len(allocated) - 1)
    peak = range_max(allocated, begin, np.minimum(ranges.end + 1, len(allocated)))
    return peak, peak - allocated[begin]


def _annotated(history: DeviceHistory, entry: int) -> StackArray:
    """int32[lifetimes]: the last text that was attached to each block by `entry` (torch 2.14+); -1 for none."""
    lifetimes, trace = history.lifetimes, history.trace
    texts = np.full(len(lifetimes), _NOTHING, np.int32)
    entries = trace.entries(Action.ANNOTATE)
    entries = entries[entries <= entry]
    if not len(entries) or not len(lifetimes) or trace.user_metadata is None:
        return texts
    addresses, place = np.unique(lifetimes.address, return_inverse=True)
    wide = history.entries + 2
    key = place * wide + lifetimes.born - BEFORE
    order = np.argsort(key, kind="stable")
    wanted = np.minimum(np.searchsorted(addresses, trace.address[entries]), len(addresses) - 1)
    at = np.searchsorted(key[order], wanted * wide + entries - BEFORE, side="right") - 1
    row = order[np.maximum(at, 0)]
    fits = (at >= 0) & (lifetimes.address[row] == trace.address[entries]) & (lifetimes.gone[row] > entries)
    texts[row[fits]] = trace.user_metadata[entries[fits]]
    return texts
