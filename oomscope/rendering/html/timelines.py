"""The figures over time of one device, with the numbers that the page's script reads off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import CATEGORIES
from oomscope.model import IntArray
from oomscope.rendering.html import charts, palette
from oomscope.rendering.html.chart_data import BUCKETS, TimeAxis, bytes_by_key, instants, last_stretch, time_axis
from oomscope.rendering.html.lifetime_keys import LifetimeKeys
from oomscope.rendering.html.svg import StyleSheet, inline_svg, plain_name, settings
from oomscope.units import format_bytes
from oomscope.wording.instants import moment_words
from oomscope.wording.labels import CATEGORY_LABELS

MOST_INSTANTS = 56
_FEW_BUCKETS = 90
_DECIMALS = 6
"""Of seconds: a close look may span milliseconds."""

_SITES_AN_INSTANT = 8


@dataclass(frozen=True, slots=True)
class TimeFigure:
    """A figure over time.

    Attributes:
        name: its identifier in the page.
        heading: the words above it.
        svg: the drawing.
        keys: (colour, label) of its bands, in the order of the legend.
        sites: whether the bands stand for sites.
        limit: whether the limit is drawn.
        has_steps, has_oom, has_active: what else is drawn; active memory is where it differs visibly from
            allocated memory.
    """

    name: str
    heading: str
    svg: Markup
    keys: tuple[tuple[str, str], ...]
    sites: bool
    limit: bool
    has_steps: bool
    has_oom: bool
    has_active: bool


@dataclass(frozen=True, slots=True)
class Timelines:
    """All figures over time, and what is embedded for the script."""

    figures: tuple[TimeFigure, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)


def draw_timelines(
    findings: Findings, device: DeviceFindings, keys: LifetimeKeys, labels: Sequence[str], sheet: StyleSheet
) -> Timelines:
    """Draw the whole recording by category, its last stretch, and the whole by site.

    Args:
        findings: all findings.
        device: the device to draw.
        keys: rows and categories of its lifetimes.
        labels: the words for each row of the findings' sites.
        sheet: collects the classes of the page.
    """
    entries = device.history.entries
    if entries < 2:
        return Timelines()
    zero = moment_words(findings)
    axis = time_axis(device.history, device.at_entry, zero)
    painter = _Painter(device, keys, axis, sheet)
    whole = painter.instants(0, entries - 1)
    stretch = last_stretch(entries, device.at_entry, device.steps.boundaries)
    figures = [painter.draw("tl-whole", "The whole recording, by category", whole, by_site=False)]
    views = {"tl-whole": whole}
    if stretch is not None:
        close = painter.instants(*stretch)
        steps = sum(stretch[0] <= boundary <= device.at_entry for boundary in device.steps.boundaries)
        what = "last three steps" if steps == 3 else "last entries"
        figures.append(painter.draw("tl-close", f"The {what} before {zero}, by category", close, by_site=False))
        views["tl-close"] = close
    # One site alone would be the first figure again, in another colour.
    if keys.rows > 2:
        figures.append(painter.draw("tl-sites", "The whole recording, by site", whole, by_site=True))
        views["tl-sites"] = whole
    return Timelines(tuple(figures), painter.data(views, labels))


def draw_beside(
    findings: Findings, device: DeviceFindings, keys: LifetimeKeys, sheet: StyleSheet
) -> tuple[TimeFigure | None, dict[str, Any]]:
    """A small figure by category for a device that the report is not about, and what the script reads off it."""
    entries = device.history.entries
    if entries < 2:
        return None, {}
    axis = time_axis(device.history, device.at_entry, moment_words(findings))
    painter = _Painter(device, keys, axis, sheet)
    at = painter.instants(0, entries - 1, _FEW_BUCKETS)
    name = f"tl-cuda{device.device}"
    figure = painter.draw(name, f"{device.name} over time", at, by_site=False, height=charts.SMALL)
    return figure, {name: painter.points(at) | {"box": charts.box(charts.SMALL)}}


class _Painter:
    """What all figures over time of one device share."""

    def __init__(self, device: DeviceFindings, keys: LifetimeKeys, axis: TimeAxis, sheet: StyleSheet) -> None:
        self.device, self.keys, self.axis, self.sheet = device, keys, axis, sheet
        self._curves = device.history.curves

    def instants(self, first: int, last: int, buckets: int = BUCKETS) -> IntArray:
        """The entries to show, the marks always among them."""
        curves, x = self._curves, self.axis.x
        found = instants(curves.allocated[1:], x, first, last, buckets)
        # Allocated memory may stand still where reserved memory falls and rises: its extremes count as well.
        steps = np.flatnonzero(np.diff(curves.reserved[1:][first : last + 1])) + first
        reserved = (
            np.concatenate([steps, steps + 1])
            if len(steps) <= 150
            else instants(curves.reserved[1:], x, first, last, 60)
        )
        marks = [entry for _, entry in self._marked() if first <= entry <= last]
        marks += [self.device.at_entry] if first <= self.device.at_entry <= last else []
        return np.unique(np.concatenate([found, reserved, np.array(marks, np.int64)]))

    def _marked(self) -> list[tuple[str, int]]:
        ooms = [("oom", oom.entry) for oom in self.device.ooms[-12:]]
        peak = self.device.peak
        return ooms + ([("peak", peak.allocated_entry)] if peak is not None and peak.allocated_entry >= 0 else [])

    def _marks(self) -> list[charts.Moment]:
        marks = []
        by_entry = {oom.entry: oom for oom in self.device.ooms}
        for kind, entry in self._marked():
            x, oom = float(self.axis.x[min(entry, len(self.axis.x) - 1)]), by_entry.get(entry)
            if kind == "oom" and oom is not None:
                marks.append(charts.Moment(x, kind, oom.alloc_size, oom.totals.allocated))
            elif kind == "peak":
                marks.append(charts.Moment(x, kind, int(self._curves.allocated[entry + 1])))
        return marks

    def _layers(self, at: IntArray, by_site: bool) -> tuple[list[charts.Layer], list[tuple[str, str]]]:
        history = self.device.history
        if by_site:
            count = self.keys.top + 1
            key = self.keys.coloured()
            colours = [*palette.SITE_COLOURS[: self.keys.top], palette.OTHER_SITES]
            names = [str(number) for number in range(self.keys.top)] + ["all other sites"]
        else:
            count, key = len(CATEGORIES), self.keys.category
            colours = [palette.CATEGORY_COLOURS[name] for name in CATEGORIES]
            names = [CATEGORY_LABELS[name] for name in CATEGORIES]
        lifetimes = history.lifetimes
        bands = bytes_by_key(lifetimes.born, lifetimes.freed, history.size, key, count, at)
        order = [count - 1, *range(count - 1)] if by_site else range(count)
        layers = [charts.Layer(colours[number], bands[number]) for number in order]
        legend = [(colours[number].variable, names[number]) for number in range(count) if bands[number].any()]
        return layers, legend

    def draw(
        self, name: str, heading: str, at: IntArray, *, by_site: bool, height: float = charts.HEIGHT
    ) -> TimeFigure:
        """One figure."""
        device, curves = self.device, self._curves
        layers, legend = self._layers(at, by_site)
        first, last = int(at[0]), int(at[-1])
        bands = [(number, b) for number, b in enumerate(device.steps.boundaries) if first <= b <= last]
        most = int(curves.reserved[at + 1].max())
        allocated, active = curves.allocated[at + 1], curves.active[at + 1]
        has_active = int((active - allocated).max()) * 100 > most
        view = charts.MemoryOverTime(
            x=self.axis.x[at],
            in_seconds=self.axis.in_seconds,
            zero=self.axis.zero,
            layers=layers,
            active=active if has_active else allocated,
            reserved=curves.reserved[at + 1],
            limit=None,
            bands=[float(self.axis.x[b]) for _, b in bands],
            names=[plain_name(device.steps.steps[number].name) for number, _ in bands],
            marks=self._marks(),
        )
        if device.oom is not None and charts.is_near(device.oom.limit.low, view):
            view = replace(view, limit=device.oom.limit.low)
        with settings(name):
            figure = charts.timeline(view, height)
            svg = inline_svg(figure, name, heading, self._description(first, last), self.sheet)
        return TimeFigure(
            name, heading, svg, tuple(legend), by_site,
            view.limit is not None, 0 < len(bands) <= charts.MOST_BANDS,
            any(first <= oom.entry <= last for oom in device.ooms),
            has_active,
        )  # fmt: skip

    def _description(self, first: int, last: int) -> str:
        curves = self._curves
        allocated, reserved = curves.allocated[first + 1 : last + 2], curves.reserved[first + 1 : last + 2]
        return (
            f"From entry {first:,} to entry {last:,}: allocated memory runs from {format_bytes(int(allocated[0]))} to "
            f"{format_bytes(int(allocated[-1]))} with a peak of {format_bytes(int(allocated.max()))}; "
            f"reserved memory peaks at {format_bytes(int(reserved.max()))}."
        )

    @property
    def _decimals(self) -> int:
        return _DECIMALS if self.axis.in_seconds else 0

    def points(self, at: IntArray) -> dict[str, Any]:
        """The values of one figure."""
        curves, seconds = self._curves, self.axis.seconds
        # Where the axis shows seconds, they need not be there twice.
        time: dict[str, Any] = {"time": True} if self.axis.in_seconds else {}
        if seconds is not None and not self.axis.in_seconds:
            time = {"time": [round(value, _DECIMALS) for value in seconds[at].tolist()]}
        return time | {
            "entry": at.tolist(),
            "x": [round(value, self._decimals) for value in self.axis.x[at].tolist()],
            # In KiB: three digits are shown, and the page stays small.
            "allocated": (curves.allocated[at + 1] >> 10).tolist(),
            "active": ((curves.active - curves.allocated)[at + 1] >> 10).tolist(),
            "reserved": (curves.reserved[at + 1] >> 10).tolist(),
        }

    def data(self, views: dict[str, IntArray], labels: Sequence[str]) -> dict[str, Any]:
        """What the script reads: the instants of each figure, and the top sites at a bounded number of them."""
        x, decimals = self.axis.x, self._decimals
        figures: dict[str, Any] = {}
        points: dict[str, IntArray] = {}
        for name, at in views.items():
            shared = next((other for other, seen in points.items() if seen is at), None)
            points.setdefault(name, at)
            figures[name] = shared or self.points(at)
        chosen = self._chosen(list(views.values()))
        history = self.device.history
        bands = bytes_by_key(
            history.lifetimes.born, history.lifetimes.freed, history.size, self.keys.row, self.keys.rows, chosen
        )
        # The row for all others is no site; it comes last, however much it holds.
        others = self.keys.rows - 1
        best = np.argsort(-bands[:others], axis=0, kind="stable")[:_SITES_AN_INSTANT]
        best = np.vstack([best, np.full((1, len(chosen)), others)])
        used = sorted({int(row) for row in np.unique(best)})
        moments = []
        for column, entry in enumerate(chosen.tolist()):
            sites = [(int(row), int(bands[row, column])) for row in best[:, column] if bands[row, column] > 0]
            moment: dict[str, Any] = {"entry": entry, "x": round(float(x[entry]), decimals), "sites": sites}
            if self.axis.seconds is not None:
                moment["time"] = round(float(self.axis.seconds[entry]), _DECIMALS)
            moments.append(moment)
        return {
            "box": charts.box(charts.HEIGHT),
            "zero": self.axis.zero,
            "figures": figures,
            "moments": moments,
            "labels": {str(row): labels[row] if row < len(labels) else "all other sites" for row in used},
            "coloured": self.keys.top,
        }

    def _chosen(self, views: list[IntArray]) -> IntArray:
        """A bounded number of instants: marks, peaks of steps, and evenly spread ones of each figure."""
        marks = [entry for _, entry in self._marked()]
        peaks = [step.peak_entry for step in self.device.steps.steps if step.peak_entry >= 0]
        picked = set(marks) | set(peaks[:: max(1, -(-len(peaks) // 16))])
        room = max(4, (MOST_INSTANTS - len(picked)) // max(1, len(views)))
        for at in views:
            targets = np.linspace(self.axis.x[at[0]], self.axis.x[at[-1]], room)
            where = np.minimum(np.searchsorted(self.axis.x[at], targets), len(at) - 1)
            picked |= {int(entry) for entry in at[where]}
        last = self.device.history.entries - 1
        return np.array(sorted({min(max(0, entry), last) for entry in picked}), np.int64)
