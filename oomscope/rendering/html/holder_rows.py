"""The table of holders: who keeps memory alive, each with the line that stores into it."""

from __future__ import annotations

from dataclasses import replace

from oomscope.analysis.attribution.records import Holder
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location
from oomscope.frozen import frozen
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.storing import store_line
from oomscope.rendering.html.live_parts import LiveParts

LEAST = 1000
"""One in so many allocated bytes is worth a row."""
MOST = 40


@frozen
class HolderLine:
    """A holder, the line that stores into it, and the number of its part of the bar; None: not known, no part.

    `shared`: that what its part shows would not come free with it alone.
    """

    holder: Holder
    at: Location | None
    part: int | None
    shared: bool = False


def beyond_holders(device: DeviceFindings, lines: tuple[HolderLine, ...]) -> int:
    """Allocated bytes that no row of the table has; what several keep together may stand in none."""
    return max(device.at.allocated - sum(line.holder.retained for line in lines), 0)


def holder_rows(device: DeviceFindings, live: LiveParts, sources: Sources) -> tuple[HolderLine, ...]:
    """The holders that keep a notable part alive, most bytes first; of those in the bar, the bytes that it shows."""
    suspects = device.oom.verdict.suspects if device.oom is not None else ()
    places = {suspect.holder: store_line(suspect, sources) for suspect in suspects}
    parts = {part.holder: number for number, part in enumerate(live.parts) if part.holder is not None}
    rows = []
    for one in device.holders:
        if not one.holder:
            continue  # counted in `beyond_holders`
        part = parts.get(one.holder)
        more = part is not None and live.parts[part].bytes > one.retained
        told = replace(one, retained=live.parts[part].bytes) if part is not None and more else one
        if told.retained * LEAST >= device.at.allocated:
            shared = more and 2 * one.retained < told.retained
            rows.append(HolderLine(told, places.get(one.holder), part, shared))
    return tuple(sorted(rows, key=lambda row: -row.holder.retained)[:MOST])
