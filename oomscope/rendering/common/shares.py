"""Who or what holds the memory in use, in a few rows of text: the same parts as on the page."""

from __future__ import annotations

from dataclasses import dataclass

from oomscope.analysis.findings import DeviceFindings
from oomscope.rendering.html.live_parts import live_parts
from oomscope.wording.page import EVERYTHING_ELSE
from oomscope.wording.paths import Shorten


@dataclass(frozen=True, slots=True)
class Share:
    """One row: bytes, and who holds them or what they are."""

    bytes: int
    text: str


def shares(device: DeviceFindings, shorten: Shorten, most: int) -> list[Share]:
    """At most `most` rows that add up to what is allocated: holders, then what else is live; the rest together."""
    rows = [Share(part.bytes, part.label) for part in live_parts(device, shorten).parts]
    rest = [row for row in rows if row.text == EVERYTHING_ELSE]
    named = [row for row in rows if row.text != EVERYTHING_ELSE]
    if len(named) + bool(rest) > most:
        named, rest = named[: most - 1], [*named[most - 1 :], *rest]
    return [*named, Share(sum(row.bytes for row in rest), EVERYTHING_ELSE)] if rest else named
