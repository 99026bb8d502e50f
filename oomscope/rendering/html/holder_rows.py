"""The table of holders: who keeps memory alive, each with the line that can let go of it."""

from __future__ import annotations

from dataclasses import dataclass

from oomscope.analysis.attribution.records import Holder
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location

LEAST = 1000
"""One in so many allocated bytes is worth a row."""
MOST = 40


@dataclass(frozen=True, slots=True)
class HolderLine:
    """A holder, and the line that can let go of it; None: not known."""

    holder: Holder
    at: Location | None


def holder_rows(device: DeviceFindings) -> tuple[HolderLine, ...]:
    """The holders that keep a notable part alive, most bytes first."""
    suspects = device.oom.verdict.suspects if device.oom is not None else ()
    places = {suspect.holder: suspect.at for suspect in suspects}
    shown = [one for one in device.holders if one.retained * LEAST >= device.at.allocated]
    return tuple(HolderLine(one, places.get(one.holder)) for one in shown[:MOST])
