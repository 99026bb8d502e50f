"""Which row of the findings and which category each allocation of a device belongs to, for figures over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.model import IntArray

TOP_SITES = 8


@dataclass(frozen=True, slots=True, eq=False)
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


def keys_of(device: DeviceFindings) -> LifetimeKeys:
    """Match every lifetime, live at the instant or not, with its row of the findings' sites."""
    table, groups = device.study.sites, device.study.attribution
    others = len(device.sites)
    row_of = {(use.site, use.caller, use.label): row for row, use in enumerate(device.sites)}
    rows = [
        row_of.get((table.location(site), table.location(caller), label), others)
        for site, caller, label in zip(groups.site.tolist(), groups.caller.tolist(), groups.label, strict=True)
    ]
    row = np.array([*rows, others], np.int64)[groups.group]
    category = device.category_of.astype(np.int64)
    return LifetimeKeys(row, category, others + 1)
