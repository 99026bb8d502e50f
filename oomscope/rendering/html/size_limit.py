"""How much a page may show: all that its caps allow, or less where that would be too large a file.

The caps of tables and figures bound the rows, not the bytes: names are a stranger's, and may be as long and as awkward
to write in HTML as he likes. What does not fit is rendered again with less room; with the least, the caps times the
longest text times the longest way to write a character stay below the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from oomscope.analysis.attribution.by_site import ALL_OTHERS
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import SiteUse

MOST_BYTES = 1_500_000
"""No page is larger."""


@dataclass(frozen=True, slots=True)
class Room:
    """Characters of each text, rows of each table (None: the table's own cap), and stacks of each site."""

    text: int
    rows: int | None = None
    stacks: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether nothing is left out beyond the usual caps."""
        return self.rows is None


ROOMS = (Room(1500), Room(400, 30, 1), Room(80, 10, 1))
"""To be tried in this order."""


def trimmed(findings: Findings, room: Room) -> Findings:
    """`findings` with no more rows than `room` has; sums stay the same."""
    rows = room.rows
    if rows is None:
        return findings
    main = findings.main
    others = [device for device in findings.devices if device is not main][: rows - 1]
    shown = sorted([*others, *([_trimmed(main, room, rows)] if main else [])], key=lambda device: device.device)
    return replace(findings, devices=tuple(shown))


def _trimmed(device: DeviceFindings, room: Room, rows: int) -> DeviceFindings:
    return replace(
        device,
        sites=tuple(replace(use, stacks=use.stacks[: room.stacks]) for use in _fewer_sites(device.sites, rows)),
        names=device.names[:rows],
        holders=device.holders[:rows],
        pins=device.pins[:rows],
        growth=device.growth[:rows],
        ooms=device.ooms[-rows:],
        fragmentation=replace(device.fragmentation, by_pool=device.fragmentation.by_pool[:rows]),
    )


def _fewer_sites(sites: tuple[SiteUse, ...], rows: int) -> tuple[SiteUse, ...]:
    if len(sites) <= rows:
        return sites
    shown, rest = sites[: rows - 1], sites[rows - 1 :]
    count, blocks = sum(use.bytes for use in rest), sum(use.blocks for use in rest)
    return (*shown, SiteUse(None, None, ALL_OTHERS, count, blocks, max(rest, key=lambda use: use.bytes).category))
