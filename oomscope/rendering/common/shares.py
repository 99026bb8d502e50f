"""Who or what holds the memory in use, in a few rows of text: the same parts as on the page."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings
from oomscope.frozen import frozen
from oomscope.rendering.html.live_parts import live_parts
from oomscope.wording.page import EVERYTHING_ELSE
from oomscope.wording.paths import Shorten


@frozen
class Share:
    """One row: bytes, and who holds them or what they are."""

    bytes: int
    text: str


def shares(device: DeviceFindings, shorten: Shorten, most: int) -> list[Share]:
    """At most `most` rows that add up to what is allocated: holders, then what else is live; the smallest together."""
    parts = live_parts(device, shorten).parts
    named = [part for part in parts if part.label != EVERYTHING_ELSE]
    if len(named) + (len(named) < len(parts)) > most:
        first = sorted(named, key=lambda part: (part.holder is None, -part.bytes))[: most - 1]
        named = [part for part in named if any(part is one for one in first)]
    rows = [Share(part.bytes, part.label) for part in named]
    rest = sum(part.bytes for part in parts) - sum(row.bytes for row in rows)
    return [*rows, Share(rest, EVERYTHING_ELSE)] if rest else rows
