"""What was live at one instant of one recording, by site: bytes, and the blocks that they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from oomscope.analysis.attribution.sites import stack_text
from oomscope.analysis.compare.pairing import LiveBlocks
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES, Location
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import NO_STACK, IntArray

SiteKey: TypeAlias = tuple[Location | None, Location | None, str | None]
"""Site, caller, and the reason where there is no site."""
_NOTHING = LiveBlocks(np.zeros(0, np.int64), np.zeros(0, np.int64))


@frozen(eq=False)
class LiveSite:
    """A site of one recording.

    Attributes:
        bytes: live at the instant.
        blocks: the live blocks, in the order in which they were made.
        most: the most blocks of the site that were live at once in the recording.
        category: what most of the bytes are; where nothing is live, of all that it ever made.
        stack: the largest stack, innermost first.
    """

    bytes: int = 0
    blocks: LiveBlocks = _NOTHING
    most: int = 0
    category: str = "unknown"
    stack: tuple[str, ...] = ()


NOT_THERE = LiveSite()


def live_sites(device: DeviceFindings, since: int | None = None) -> Mapping[SiteKey, LiveSite]:
    """Every site of the recording, also those of which nothing is live at the instant of `device`.

    Args:
        device: the findings about one device at one instant.
        since: an entry; only blocks made by it or later count as live. None: all.
    """
    study, history = device.study, device.history
    attribution, sites = study.attribution, study.sites
    groups = len(attribution.site)
    if not groups:
        return {}
    live = np.flatnonzero(history.lifetimes.allocated_at(device.at_entry))
    if since is not None:
        live = live[history.lifetimes.born[live] >= since]
    live = live[np.lexsort((history.lifetimes.born[live], attribution.group[live]))]
    bounds = np.searchsorted(attribution.group[live], np.arange(groups + 1))
    most = _most_at_once(history, attribution.group, groups)
    category = _categories(device, attribution.group, live, groups)
    found: dict[SiteKey, LiveSite] = {}
    for number in range(groups):
        rows = live[bounds[number] : bounds[number + 1]]
        size = history.size[rows]
        requested = history.lifetimes.requested[rows]
        key = (
            sites.location(int(attribution.site[number])),
            sites.location(int(attribution.caller[number])),
            attribution.label[number],
        )
        found[key] = LiveSite(
            bytes=int(size.sum()),
            blocks=LiveBlocks(np.where(requested < 0, size, requested), size),
            most=int(most[number]),
            category=CATEGORIES[int(category[number])],
            stack=_largest_stack(device, rows, size),
        )
    return found


def _most_at_once(history: DeviceHistory, group: IntArray, groups: int) -> IntArray:
    """For each group, the most of its blocks that were allocated at once."""
    lifetimes = history.lifetimes
    which = np.concatenate([group, group])
    when = np.concatenate([lifetimes.born, lifetimes.freed])
    step = np.repeat([1, -1], len(group))
    order = np.lexsort((step, when, which))
    count = np.cumsum(step[order])
    # Every group adds as many as it takes away, so each begins at 0.
    first = np.searchsorted(which[order], np.arange(groups))
    most: IntArray = np.maximum.reduceat(count, first).astype(np.int64)
    return most


def _categories(device: DeviceFindings, group: IntArray, live: IntArray, groups: int) -> IntArray:
    """For each group, the category of most of its live bytes; where nothing is live, of all its bytes."""
    size, kind = device.history.size, device.category_of
    shape = (groups, len(CATEGORIES))
    ever, now = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(ever, (group, kind), size)
    np.add.at(now, (group[live], kind[live]), size[live])
    most: IntArray = np.where(now.any(axis=1), now.argmax(axis=1), ever.argmax(axis=1)).astype(np.int64)
    return most


def _largest_stack(device: DeviceFindings, rows: IntArray, size: IntArray) -> tuple[str, ...]:
    stack = device.history.lifetimes.stack[rows]
    known = stack != NO_STACK
    if not known.any():
        return ()
    numbers, which = np.unique(stack[known], return_inverse=True)
    held = np.bincount(which, weights=size[known])
    return stack_text(device.study.snapshot.stacks, int(numbers[int(held.argmax())]))
