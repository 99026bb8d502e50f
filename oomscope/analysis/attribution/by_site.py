"""Who holds the memory: live bytes at one instant, by the code that allocated them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.analysis.attribution.sites import NO_LOCATION, SiteTable, stack_text
from oomscope.analysis.records import CATEGORIES, PHASES, SiteUse
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import NO_STACK, IntArray, StackTable, UInt8Array
from oomscope.model.arrays import StackArray

MOST_ROWS = 100
STACKS_A_ROW = 5

# Why memory has no site; their words are the `SITE_LABELS` of `oomscope.wording.labels`.
NO_FRAMES_BACKWARD = "backward"
NO_FRAMES = "no_frames"
BEFORE_RECORDING = "before_recording"
EVICTED = "overwritten"
NO_STACK_KEPT = "no_stack"
ONLY_TORCH = "only_torch"
ALL_OTHERS = "all_others"
_LABELS = ("", NO_FRAMES_BACKWARD, NO_FRAMES, BEFORE_RECORDING, EVICTED, ONLY_TORCH, NO_STACK_KEPT)
_WHY_UNSEEN = {"wrapped": EVICTED, "state_only": NO_STACK_KEPT, "none": NO_STACK_KEPT}


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Which rows of the table each lifetime belongs to.

    Attributes:
        group: int64[lifetimes], number of the (site, caller, label) that the lifetime belongs to.
        site, caller: int32[groups], location numbers of a `SiteTable`.
        label: the reason why a group has no site, else None.
    """

    group: IntArray
    site: StackArray
    caller: StackArray
    label: tuple[str | None, ...]


def attribute(history: DeviceHistory, sites: SiteTable, phases: UInt8Array, *, kind: str) -> Attribution:
    """Group all lifetimes by site and caller; those without a site by the reason why.

    Args:
        history: the device's history.
        sites: sites and callers of the snapshot's stacks.
        phases: uint8[lifetimes], indices into `PHASES`.
        kind: how complete the history is, as `quality.history_kind` says it.
    """
    lifetimes = history.lifetimes
    stack = lifetimes.stack
    site, caller = sites.sites(stack), sites.callers(stack)
    backward = phases == PHASES.index("backward")
    before = lifetimes.born == BEFORE
    reason = np.select(
        [site != NO_LOCATION, (stack == NO_STACK) & before, backward, stack == NO_STACK],
        [0, _LABELS.index(_WHY_UNSEEN.get(kind, BEFORE_RECORDING)), 1, 2],
        default=_LABELS.index(ONLY_TORCH),
    )
    width = len(sites) + 1
    key = ((reason * width) + site + 1) * width + caller + 1
    distinct, group = np.unique(key, return_inverse=True)
    return Attribution(
        group=group.astype(np.int64),
        site=(distinct // width % width - 1).astype(np.int32),
        caller=(distinct % width - 1).astype(np.int32),
        label=tuple(_LABELS[index] or None for index in (distinct // width // width).tolist()),
    )


def site_uses(
    history: DeviceHistory,
    attribution: Attribution,
    sites: SiteTable,
    stacks: StackTable,
    categories: UInt8Array,
    entry: int,
) -> tuple[SiteUse, ...]:
    """The sites that hold memory once `entry` has happened, largest first; sums to the allocated bytes then."""
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
