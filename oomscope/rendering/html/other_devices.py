"""The devices that the report is not about: for each a little of everything."""

from __future__ import annotations

from typing import Any

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.frozen import frozen
from oomscope.rendering.html.memory_bars import MemoryBar, memory_bar
from oomscope.rendering.html.site_rows import SiteRow, site_rows
from oomscope.rendering.html.svg import StyleSheet
from oomscope.rendering.html.timelines import TimeFigure, draw_beside, told_of
from oomscope.wording.paths import Shorten

MOST_DEVICES = 15
MOST_SITES = 5


@frozen
class DeviceView:
    """One other device.

    Attributes:
        device: its findings.
        equation: where its memory is.
        timeline: its memory over time; None: no history, or never any memory.
        data: what the page's script reads off the timeline.
        sites: its largest sites.
        others: the bytes of all further sites.
    """

    device: DeviceFindings
    equation: MemoryBar
    timeline: TimeFigure | None
    data: dict[str, Any]
    sites: tuple[SiteRow, ...]
    others: int


def other_devices(findings: Findings, shorten: Shorten, sheet: StyleSheet) -> tuple[DeviceView, ...]:
    """All devices but the main one, at most `MOST_DEVICES`."""
    others = [device for device in findings.devices if device is not findings.main]
    return tuple(_view(findings, device, shorten, sheet) for device in others[:MOST_DEVICES])


def _view(findings: Findings, device: DeviceFindings, shorten: Shorten, sheet: StyleSheet) -> DeviceView:
    told = told_of(device, shorten, by_line=False)
    is_used = bool(device.history.curves.reserved.any())
    timeline, data = draw_beside(findings, device, told, sheet) if is_used else (None, {})
    rows = site_rows(device, findings.snapshot.stacks, told.keys, shorten)[:MOST_SITES]
    others = device.at.allocated - sum(row.bytes for row in rows)
    return DeviceView(device, memory_bar(device), timeline, data, rows, others)
