"""What the program named, its pools, and pinned host memory with a timeline of its own: tables and one drawing."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import IntArray
from oomscope.rendering.common import said_tables
from oomscope.rendering.common.tables import Table
from oomscope.units import format_bytes, format_duration
from oomscope.wording.paths import Shorten
from oomscope.wording.said import said_text

_MOST_ROWS = 20
_POINTS = 300
_WIDTH, _HEIGHT = 1000, 100


@frozen
class PinnedTimeline:
    """Pinned memory over the entries of its own trace; stretched to the width of any screen, so without words in it.

    Attributes:
        svg: the drawing.
        top: what its upper edge stands for.
        span: how long it lasts; empty where entries have no times.
    """

    svg: Markup
    top: str
    span: str


@frozen
class SaidView:
    """The section; empty where the program named nothing and no pinned memory was recorded.

    Attributes:
        request: what the program had said of the request that failed.
        tables: those with rows.
        pinned: of pinned host memory; None without a course of events.
    """

    request: str | None
    tables: tuple[Table, ...]
    pinned: PinnedTimeline | None

    @property
    def is_there(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.tables or self.request)


def said_view(findings: Findings, device: DeviceFindings, shorten: Shorten) -> SaidView:
    """What the program named on `device`, and what the snapshot tells of pinned host memory."""
    tables = (
        said_tables.named(device, _MOST_ROWS),
        said_tables.private_pools(device, _MOST_ROWS),
        said_tables.pinned(findings),
        said_tables.pinned_sites(findings, shorten, _MOST_ROWS),
    )
    pinned = findings.pinned
    moves = pinned is not None and pinned.study is not None and pinned.study.history.moves
    return SaidView(
        request=None if device.oom is None else said_text(device.oom.said),
        tables=tuple(table for table in tables if table.rows),
        pinned=_timeline(pinned.study.history) if pinned and pinned.study and moves else None,
    )


def without_devices(findings: Findings) -> tuple[Table, ...]:
    """What is known where nothing of a device is in the snapshot: torch's counters, and holders of tensors."""
    tables = (
        said_tables.counted(findings),
        said_tables.counted_holders(findings, _MOST_ROWS),
        said_tables.pinned(findings),
    )
    return tuple(table for table in tables if table.rows)


def _timeline(history: DeviceHistory) -> PinnedTimeline:
    reserved, active = (np.maximum(curve, 0) for curve in (history.curves.reserved, history.curves.active))
    top = max(int(reserved.max()), 1)
    lines = "".join(
        f'<polyline class="{name}" fill="none" vector-effect="non-scaling-stroke" points="{_points(curve, top)}"/>'
        for name, curve in (("l-reserved", reserved), ("l-active", active))
    )
    trace = history.trace
    span = format_duration(int(trace.time_us[-1]) - int(trace.time_us[0])) if trace.timed else ""
    # Numbers and names of classes alone: nothing in it comes from the snapshot.
    svg = Markup(  # noqa: S704
        f'<svg width="100%" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img">'
        f"<title>Pinned host memory over time: pinned at most {format_bytes(top)}</title>{lines}</svg>"
    )
    return PinnedTimeline(svg, format_bytes(top), span)


def _points(curve: IntArray, top: int) -> str:
    """A step line through the highest value of each of at most `_POINTS` stretches."""
    begins = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), _POINTS)).astype(np.int64))
    high = np.maximum.reduceat(curve, begins)
    x = np.append(begins, len(curve)) * _WIDTH / len(curve)
    y = _HEIGHT - high * (_HEIGHT - 2) / top - 1
    steps = (f"{left:.1f},{level:.1f} {right:.1f},{level:.1f}" for left, right, level in zip(x, x[1:], y, strict=False))
    return " ".join(steps)
