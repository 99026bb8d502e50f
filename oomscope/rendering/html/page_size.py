"""The bound on a page's size in bytes, and the caps that keep every page below it.

The usual caps of tables and figures bound the rows, not the bytes: names come from a stranger's file, and may be as
long and as awkward to write in HTML as its author likes. A page that is too large is rendered again with lower caps;
with the lowest, rows times the longest text times the longest way to write a character stay below the bound.
"""

from __future__ import annotations

from dataclasses import replace

from oomscope.analysis.attribution.by_site import ALL_OTHERS
from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.frozen import frozen

MOST_BYTES = 1_500_000
"""No page is larger."""


@frozen
class PageCaps:
    """Characters of each text, rows of each table (None: the table's own cap), and stacks of each site."""

    text: int
    rows: int | None = None
    stacks: int | None = None

    @property
    def is_usual(self) -> bool:
        """Whether nothing is left out beyond the usual caps."""
        return self.rows is None


PAGE_CAPS = (PageCaps(1500), PageCaps(400, 30, 1), PageCaps(80, 10, 1))
"""To be tried in this order."""


def trimmed(findings: Findings, caps: PageCaps) -> Findings:
    """`findings` with no more rows than `caps` allow; sums stay the same."""
    rows = caps.rows
    if rows is None:
        return findings
    main = findings.main
    others = [device for device in findings.devices if device is not main][: rows - 1]
    shown = sorted([*others, *([_trimmed(main, caps, rows)] if main else [])], key=lambda device: device.device)
    return replace(findings, devices=tuple(shown))


def _trimmed(device: DeviceFindings, caps: PageCaps, rows: int) -> DeviceFindings:
    return replace(
        device,
        sites=tuple(replace(use, stacks=use.stacks[: caps.stacks]) for use in _fewer_sites(device.sites, rows)),
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
