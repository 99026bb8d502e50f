"""The table of holders: who keeps memory alive, each with the line that stores into it."""

from __future__ import annotations

from dataclasses import dataclass

from oomscope.analysis.attribution.records import Holder
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.storing import store_line
from oomscope.rendering.html.live_parts import LiveParts

LEAST = 1000
"""One in so many allocated bytes is worth a row."""
MOST = 40


@dataclass(frozen=True, slots=True)
class HolderLine:
    """A holder, the line that stores into it, and the number of its part of the bar; None: not known, no part."""

    holder: Holder
    at: Location | None
    part: int | None


def beyond_holders(device: DeviceFindings, lines: tuple[HolderLine, ...]) -> int:
    """Allocated bytes that no row of the table has; what several keep together may stand in none."""
    return max(device.at.allocated - sum(line.holder.retained for line in lines), 0)


def holder_rows(device: DeviceFindings, live: LiveParts, sources: Sources) -> tuple[HolderLine, ...]:
    """The holders that keep a notable part alive, most bytes first."""
    suspects = device.oom.verdict.suspects if device.oom is not None else ()
    places = {suspect.holder: store_line(suspect, sources) for suspect in suspects}
    parts = {part.holder: number for number, part in enumerate(live.parts) if part.holder is not None}
    shown = [one for one in device.holders if one.retained * LEAST >= device.at.allocated]
    return tuple(HolderLine(one, places.get(one.holder), parts.get(one.holder)) for one in shown[:MOST])
