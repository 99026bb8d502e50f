"""Which row of the findings and which category each allocation of a device belongs to, for figures over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.analysis.records import CATEGORIES, DeviceFindings, Location
from oomscope.analysis.sites import SiteTable
from oomscope.model import IntArray, StackTable

TOP_SITES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
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


def keys_of(device: DeviceFindings, stacks: StackTable) -> Keys:
    """Match every lifetime, live at the instant or not, with the row of its site and caller."""
    others = len(device.sites)
    stack = device.history.lifetimes.stack
    table = SiteTable(stacks)
    row_of_place: dict[tuple[Location | None, Location | None], int] = {}
    row_of_stack: dict[int, int] = {}
    for place_row, use in enumerate(device.sites):
        if use.site is not None:
            row_of_place.setdefault((use.site, use.caller), place_row)
        for number, _, _ in use.stacks:
            row_of_stack.setdefault(number, place_row)
    row_of: IntArray = np.full(len(stacks) + 1, others, np.int64)
    for number in np.unique(stack[stack >= 0]).tolist():
        place = (table.location(int(table.site_of[number])), table.location(int(table.caller_of[number])))
        row_of[number] = row_of_place.get(place, row_of_stack.get(number, others))
    row = row_of[stack]
    category = np.full(len(row), CATEGORIES.index("unknown"), np.int64)
    if device.category_of is not None:
        category = device.category_of.astype(np.int64)
    return Keys(row, category, others + 1)
