"""Which row of the findings and which category each allocation of a device belongs to, for figures over time."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES
from oomscope.frozen import frozen
from oomscope.model import IntArray
from oomscope.rendering.html.chart_data import bytes_by_key, instants

TOP_SITES = 8
TOLD_SITES = 24
"""Sites whose bytes are told at every instant; the largest of them have a colour too."""
EARLIER_SITES = 12
"""Sites that had given back what they made before the instant of attribution, told as well."""
EARLIER_SHARE = 0.02
"""Of the highest allocated bytes: what an earlier site must have held once to be told."""
_MOST_GROUPS = 20_000
_LOOKED_AT = 100


@frozen(eq=False)
class LifetimeKeys:
    """Keys of a device's lifetimes.

    Attributes:
        row: int64[lifetimes], the row of the findings' sites; `len(sites)` for all others.
        category: int64[lifetimes], numbers in `CATEGORIES`.
        rows: how many rows there are, with the one for all others.
    """

    row: IntArray
    category: IntArray
    rows: int

    @property
    def top(self) -> int:
        """How many of the largest sites have a colour of their own."""
        return min(TOP_SITES, self.rows - 1)

    def coloured(self) -> IntArray:
        """int64[lifetimes]: the row where it has a colour of its own, else `top`."""
        return np.minimum(self.row, self.top)


@frozen(eq=False)
class Rows:
    """The lines that are told apart at every instant.

    Attributes:
        key: int64[lifetimes], the line of each; `count` for all others.
        told: how many of the findings' sites come first.
        earlier: the lines after them: nothing that they made is live at the instant of attribution.
    """

    key: IntArray
    told: int
    earlier: tuple[SiteUse, ...] = ()

    @property
    def count(self) -> int:
        """How many lines are told apart."""
        return self.told + len(self.earlier)


def keys_of(device: DeviceFindings) -> LifetimeKeys:
    """Match every lifetime, live at the instant or not, with its row of the findings' sites."""
    groups = device.study.attribution
    row = np.array([*_row_of_groups(device), len(device.sites)], np.int64)[groups.group]
    category = device.category_of.astype(np.int64)
    return LifetimeKeys(row, category, len(device.sites) + 1)


def told_rows(device: DeviceFindings, keys: LifetimeKeys) -> Rows:
    """The largest sites of the instant, then those that held much before it."""
    told = min(TOLD_SITES, keys.rows - 1)
    key = np.minimum(keys.row, told)
    groups, others = device.study.attribution.group, keys.rows - 1
    outside = np.flatnonzero(np.array(_row_of_groups(device), np.int64) == others)
    if not len(outside) or len(outside) > _MOST_GROUPS:
        return Rows(key, told)
    highest = _highest(device, groups, outside)
    least = EARLIER_SHARE * int(device.history.curves.allocated.max(initial=0))
    best = [number for number in np.argsort(-highest, kind="stable").tolist() if highest[number] > least]
    chosen = outside[best[:EARLIER_SITES]]
    place = np.full(len(device.study.attribution.site), told + len(chosen), np.int64)
    place[chosen] = told + np.arange(len(chosen))
    key = np.where(keys.row < told, keys.row, place[groups])
    return Rows(key, told, tuple(_earlier(device, keys, int(group)) for group in chosen))


def _row_of_groups(device: DeviceFindings) -> list[int]:
    table, groups = device.study.sites, device.study.attribution
    others = len(device.sites)
    row_of = {(use.site, use.caller, use.label): row for row, use in enumerate(device.sites)}
    return [
        row_of.get((table.location(site), table.location(caller), label), others)
        for site, caller, label in zip(groups.site.tolist(), groups.caller.tolist(), groups.label, strict=True)
    ]


def _highest(device: DeviceFindings, groups: IntArray, outside: IntArray) -> IntArray:
    """int64[outside]: the most that each group held, as far as a look at the extremes of the curve tells."""
    history = device.history
    if history.entries < 1:
        return np.zeros(len(outside), np.int64)
    number = np.full(len(device.study.attribution.site), len(outside), np.int64)
    number[outside] = np.arange(len(outside))
    at = instants(history.curves.allocated[1:], 0, history.entries - 1, _LOOKED_AT)
    lifetimes = history.lifetimes
    held = bytes_by_key(lifetimes.born, lifetimes.freed, history.size, number[groups], len(outside) + 1, at)
    highest: IntArray = held[:-1].max(axis=1, initial=0)
    return highest


def _earlier(device: DeviceFindings, keys: LifetimeKeys, group: int) -> SiteUse:
    """A row for a line of which nothing is live at the instant."""
    table, groups = device.study.sites, device.study.attribution
    made = np.bincount(keys.category[groups.group == group], minlength=len(CATEGORIES))
    return SiteUse(
        table.location(int(groups.site[group])), table.location(int(groups.caller[group])), groups.label[group],
        bytes=0, blocks=0, category=CATEGORIES[int(made.argmax())],
    )  # fmt: skip
