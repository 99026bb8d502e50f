"""Who holds the memory: live bytes at one instant, by the code that allocated them."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.by_site import ALL_OTHERS
from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.attribution.sites import stack_text
from oomscope.analysis.records import CATEGORIES
from oomscope.analysis.study import DeviceStudy
from oomscope.model import NO_STACK, IntArray, UInt8Array
from oomscope.model.arrays import StackArray

MOST_ROWS = 100
STACKS_A_ROW = 5


def site_uses(study: DeviceStudy, entry: int, categories: UInt8Array | None = None) -> tuple[SiteUse, ...]:
    """The sites that hold memory once `entry` has happened, largest first; sums to the allocated bytes then.

    Args:
        study: of the device.
        entry: the instant.
        categories: uint8[lifetimes], as the drivers of that instant see them; the study's own if None.
    """
    history, attribution, sites = study.history, study.attribution, study.sites
    categories = study.categories if categories is None else categories
    stacks = study.snapshot.stacks
    live = np.flatnonzero(history.lifetimes.allocated_at(entry))
    if not len(live):
        return ()
    size, group = history.size[live], attribution.group[live]
    groups = len(attribution.site)
    total = np.zeros(groups, np.int64)
    np.add.at(total, group, size)
    blocks = np.bincount(group, minlength=groups)
    order = np.argsort(-total, kind="stable")
    order = order[blocks[order] > 0]
    shown = order if len(order) <= MOST_ROWS else order[: MOST_ROWS - 1]
    by_category = np.zeros((groups, len(CATEGORIES)), np.int64)
    np.add.at(by_category, (group, categories[live]), size)
    by_stack = _stacks_of(group, history.lifetimes.stack[live], size)
    rows = [
        SiteUse(
            site=sites.location(int(attribution.site[row])),
            caller=sites.location(int(attribution.caller[row])),
            label=attribution.label[row],
            bytes=int(total[row]),
            blocks=int(blocks[row]),
            category=CATEGORIES[int(by_category[row].argmax())],
            stack=stack_text(stacks, by_stack[row][0][0]) if row in by_stack else (),
            stacks=tuple(by_stack.get(row, ())),
        )
        for row in shown.tolist()
    ]
    rest = order[len(shown) :]
    if len(rest):
        category = CATEGORIES[int(by_category[rest].sum(axis=0).argmax())]
        rows.append(SiteUse(None, None, ALL_OTHERS, int(total[rest].sum()), int(blocks[rest].sum()), category))
    return tuple(rows)


def _stacks_of(group: IntArray, stack: StackArray, size: IntArray) -> dict[int, list[tuple[int, int, int]]]:
    """For each group, its largest stacks as (stack, bytes, blocks)."""
    known = stack != NO_STACK
    group, stack, size = group[known], stack[known], size[known]
    key = group << 32 | stack
    distinct, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    total = np.zeros(len(distinct), np.int64)
    np.add.at(total, inverse, size)
    found: dict[int, list[tuple[int, int, int]]] = {}
    for index in np.argsort(-total, kind="stable").tolist():
        rows = found.setdefault(int(distinct[index] >> 32), [])
        if len(rows) < STACKS_A_ROW:
            rows.append((int(distinct[index] & 0xFFFF_FFFF), int(total[index]), int(counts[index])))
    return found
