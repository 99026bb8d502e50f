"""What is allocated by the parts that the first screen shows, and which of them a category consists of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES
from oomscope.frozen import frozen
from oomscope.rendering.html.live_parts import LiveParts
from oomscope.rendering.html.percent import percent, share
from oomscope.units import format_bytes

LEAST_SHARE = 0.01
"""Of a category; smaller parts of it are not worth a word."""


@frozen
class ShareRow:
    """A part of what is allocated: its words, its colour (a CSS class) with an opacity, its bytes, and its place."""

    label: str
    colour: str
    opacity: float
    bytes: int
    share: str
    x: str
    width: str


def share_rows(device: DeviceFindings, live: LiveParts) -> tuple[ShareRow, ...]:
    """The parts of the bar as a bar of what is allocated alone."""
    total, start, rows = device.at.allocated, 0, []
    for one in live.parts:
        place = share(one.bytes, total), percent(start, total), percent(one.bytes, total)
        rows.append(ShareRow(one.label, f"k-{one.colour.variable}", one.opacity, one.bytes, *place))
        start += one.bytes
    return tuple(rows)


def made_of(device: DeviceFindings, live: LiveParts) -> Mapping[str, str]:
    """For each category what is kept of it, where the bar shows that apart: ``3.43 GiB of it in job.last_error``."""
    rows = np.flatnonzero(device.history.lifetimes.allocated_at(device.at_entry))
    size, part, category = device.history.size[rows], live.key[rows], device.category_of[rows]
    found = {}
    for number, name in enumerate(CATEGORIES):
        held = np.bincount(part[category == number], weights=size[category == number], minlength=len(live.parts))
        least = max(LEAST_SHARE * held.sum(), 1)
        kept = [
            f"{'all' if held[at] == held.sum() else format_bytes(int(held[at]))} of it in {one.label}"
            for at, one in enumerate(live.parts)
            if one.holder is not None and held[at] >= least
        ]
        if kept:
            found[name] = ", ".join(kept)
    return found
