"""The figures over time of one device, with the numbers that the page's script reads off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.frozen import frozen
from oomscope.model import IntArray
from oomscope.model.ordering import ascending
from oomscope.rendering.html import charts, palette
from oomscope.rendering.html.chart_data import BUCKETS, TimeAxis, bytes_by_key, instants, last_stretch, time_axis
from oomscope.rendering.html.failures import apart, failed_up_to
from oomscope.rendering.html.flame import Flame
from oomscope.rendering.html.lifetime_keys import LifetimeKeys, Rows, keys_of, told_rows
from oomscope.rendering.html.live_parts import LiveParts, live_parts
from oomscope.rendering.html.site_rows import place_of
from oomscope.rendering.html.svg import StyleSheet, inline_svg, plain_name, settings
from oomscope.rendering.html.timeline_data import bands_of, packed
from oomscope.units import format_bytes
from oomscope.wording.clean import clean
from oomscope.wording.instants import moment_words
from oomscope.wording.labels import CATEGORY_LABELS, PHASE_LABELS
from oomscope.wording.loops import pass_word
from oomscope.wording.page import OTHER_LINES, given_back
from oomscope.wording.paths import Shorten

_FEW_BUCKETS = 90
_BESIDE_BYTES = 6_000
"""Of the packed numbers of a device that the report is not about, before base64."""
_MOST_STEPS = 400
"""Steps whose beginnings and names the script gets."""


class Key(NamedTuple):
    """An entry of a legend: the class of its colour, an opacity, and the words."""

    colour: str
    opacity: float
    label: str


@frozen
class TimeFigure:
    """A figure over time.

    Attributes:
        name: its identifier in the page.
        heading: the words above it.
        svg: the drawing.
        keys: the bands, in the order of the legend.
        limit: whether the limit is drawn.
        has_steps, has_oom, has_active: what else is drawn; active memory is where it differs visibly from
            allocated memory.
        top: the bytes at which its axis ends.
    """

    name: str
    heading: str
    svg: Markup
    keys: tuple[Key, ...]
    limit: bool
    has_steps: bool
    has_oom: bool
    has_active: bool
    top: int


@frozen(eq=False)
class Told:
    """What is told apart in a device's figures over time.

    Attributes:
        keys: the categories and sites of its lifetimes.
        live: the parts of what is live at the instant.
        rows: the lines that are told apart.
        labels: the words for each of them.
    """

    keys: LifetimeKeys
    live: LiveParts
    rows: Rows
    labels: tuple[str, ...]


def told_of(device: DeviceFindings, shorten: Shorten, *, longest: int = 160, by_line: bool = True) -> Told:
    """What is told apart on `device`; without lines where `by_line` is false."""
    keys = keys_of(device)
    rows = told_rows(device, keys) if by_line else Rows(np.zeros(len(keys.row), np.int64), 0)
    places = [place_of(use, shorten) for use in (*device.sites[: rows.told], *rows.earlier)]
    labels = [clean(" ".join(filter(None, (place.text, place.function))), longest) for place in places]
    return Told(keys, live_parts(device, shorten), rows, tuple(labels))


@frozen
class Timelines:
    """The whole recording, its last stretch (None where that is most of it), and what is embedded for the script."""

    whole: TimeFigure | None = None
    close: TimeFigure | None = None
    close_words: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def draw_timelines(
    findings: Findings, device: DeviceFindings, told: Told, sheet: StyleSheet, flames: Sequence[Flame] = ()
) -> Timelines:
    """Draw the whole recording and its last stretch, by the parts that the first screen shows.

    Args:
        findings: all findings.
        device: the device to draw.
        told: what is told apart on it.
        sheet: collects the classes of the page.
        flames: the flame graphs that follow what is chosen in the timeline.
    """
    entries = device.history.entries
    if entries < 2:
        return Timelines()
    zero = moment_words(findings)
    painter = _Painter(device, told, time_axis(device.history, device.at_entry, zero), sheet, flames)
    whole = painter.draw(
        "tl-whole", "The whole recording" if device.part is None else "The part shown", painter.instants(0, entries - 1)
    )
    stretch = last_stretch(entries, device.at_entry, device.rounds.boundaries)
    if stretch is None:
        return Timelines(whole, data=painter.data(None, whole))
    steps = sum(stretch[0] <= boundary <= device.at_entry for boundary in device.rounds.boundaries)
    words = f"last three {pass_word(device)[1]}" if steps == 3 else "last entries"
    close = painter.draw("tl-close", f"The {words} before {zero}", painter.instants(*stretch))
    return Timelines(whole, close, words, painter.data(stretch, whole))


def draw_beside(
    findings: Findings, device: DeviceFindings, told: Told, sheet: StyleSheet
) -> tuple[TimeFigure | None, dict[str, Any]]:
    """A small figure for a device that the report is not about, and what the script reads off it."""
    entries = device.history.entries
    if entries < 2:
        return None, {}
    axis = time_axis(device.history, device.at_entry, moment_words(findings))
    painter = _Painter(device, told, axis, sheet)
    at = painter.instants(0, entries - 1, _FEW_BUCKETS)
    name = f"tl-cuda{device.device}"
    figure = painter.draw(name, f"{device.name} over time", at, height=charts.SMALL)
    return figure, {name: painter.data(None, figure, beside=True)}


class _Painter:
    """What all figures over time of one device share."""

    def __init__(
        self, device: DeviceFindings, told: Told, axis: TimeAxis, sheet: StyleSheet, flames: Sequence[Flame] = ()
    ) -> None:
        self.device, self.told, self.axis, self.sheet, self.flames = device, told, axis, sheet, flames
        self._curves = device.history.curves
        self._failed = failed_up_to(device, device.history.entries - 1)
        self.freed = given_back(axis.zero, is_last=device.at_entry == device.history.entries - 1)

    def instants(self, first: int, last: int, buckets: int = BUCKETS) -> IntArray:
        """The entries to show, the marks always among them."""
        curves = self._curves
        found = instants(curves.allocated[1:], first, last, buckets)
        # Allocated memory may stand still where reserved memory falls and rises: its extremes count as well.
        steps = np.flatnonzero(np.diff(curves.reserved[1:][first : last + 1])) + first
        reserved = (
            np.concatenate([steps, steps + 1]) if len(steps) <= 150 else instants(curves.reserved[1:], first, last, 60)
        )
        marks = [entry for _, entry in self._marked() if first <= entry <= last]
        marks += [self.device.at_entry] if first <= self.device.at_entry <= last else []
        return ascending(np.concatenate([found, reserved, np.array(marks, np.int64)]))

    def _marked(self) -> list[tuple[str, int]]:
        known = {oom.entry for oom in self.device.ooms}
        ooms = [("oom", entry) for entry in self._failed if entry in known]
        peak = self.device.peak
        return ooms + ([("peak", peak.allocated_entry)] if peak is not None and peak.allocated_entry >= 0 else [])

    def _x(self, entry: int) -> float:
        return float(entry + self.device.first_entry)

    def _marks(self) -> list[charts.Moment]:
        marks = []
        by_entry = {oom.entry: oom for oom in self.device.ooms}
        for kind, entry in self._marked():
            x, oom = self._x(min(entry, self.device.history.entries - 1)), by_entry.get(entry)
            if kind == "oom" and oom is not None:
                marks.append(charts.Moment(x, kind, oom.alloc_size, oom.totals.reserved))
            elif kind == "peak":
                marks.append(charts.Moment(x, kind, int(self._curves.allocated[entry + 1])))
        return marks

    def _layers(self, at: IntArray) -> tuple[list[charts.Layer], list[Key]]:
        """The bands from below, as in the small timeline: the smallest part first, what was freed on top."""
        history, lifetimes, live = self.device.history, self.device.history.lifetimes, self.told.live
        bands = bytes_by_key(
            lifetimes.born, lifetimes.freed, history.size, live.key, len(live.parts) + 1, at
        )  # fmt: skip
        kinds = [(part.colour, part.opacity, part.label) for part in live.parts]
        kinds.append((palette.FREED, 1.0, self.freed))
        layers = [charts.Layer(kinds[number][0], bands[number], kinds[number][1]) for number in live.from_below]
        shown = zip(kinds, bands, strict=True)
        return layers, [Key(f"k-{colour.variable}", shade, text) for (colour, shade, text), band in shown if band.any()]

    def draw(self, name: str, heading: str, at: IntArray, *, height: float = charts.HEIGHT) -> TimeFigure:
        """One figure."""
        device, curves = self.device, self._curves
        layers, legend = self._layers(at)
        first, last = int(at[0]), int(at[-1])
        bands = [(number, b) for number, b in enumerate(device.rounds.boundaries) if first <= b <= last]
        most = int(curves.reserved[at + 1].max())
        allocated, active = curves.allocated[at + 1], curves.active[at + 1]
        has_active = int((active - allocated).max()) * 100 > most
        view = charts.MemoryOverTime(
            x=(at + device.first_entry).astype(np.float64),
            axis=self.axis,
            layers=layers,
            active=active if has_active else allocated,
            reserved=curves.reserved[at + 1],
            limit=None,
            bands=[self._x(b) for _, b in bands],
            names=[plain_name(device.rounds.steps[number].name) for number, _ in bands],
            marks=self._marks(),
            failed=[entry + device.first_entry for entry in self._failed],
            first=device.first_entry,
        )
        if device.oom is not None and charts.is_near(device.oom.limit.low, view):
            view = replace(view, limit=device.oom.limit.low)
        with settings(name):
            figure = charts.timeline(view, height)
            svg = inline_svg(figure, name, heading, self._description(first, last), self.sheet)
        return TimeFigure(
            name, heading, svg, tuple(legend),
            view.limit is not None, 0 < len(bands) <= charts.MOST_BANDS,
            any(first <= entry <= last for entry in self._failed),
            has_active,
            round(charts.axis_top(view)),
        )  # fmt: skip

    def _description(self, first: int, last: int) -> str:
        curves, shift = self._curves, self.device.first_entry
        allocated, reserved = curves.allocated[first + 1 : last + 2], curves.reserved[first + 1 : last + 2]
        return (
            f"From entry {first + shift:,} to entry {last + shift:,}: allocated memory runs from "
            f"{format_bytes(int(allocated[0]))} to {format_bytes(int(allocated[-1]))} with a peak "
            f"of {format_bytes(int(allocated.max()))}; "
            f"reserved memory peaks at {format_bytes(int(reserved.max()))}."
        )

    def data(self, stretch: tuple[int, int] | None, figure: TimeFigure, *, beside: bool = False) -> dict[str, Any]:
        """What the script reads: exact values at each instant, and what the drawing shows besides."""
        device, told = self.device, self.told
        live = told.live
        bands = bands_of(device, told.keys, live.key, told.rows, [one.key for one in self.flames])
        peaks = [step.peak_entry for step in device.rounds.steps[:: max(1, -(-len(device.rounds.steps) // 64))]]
        marks = [entry for _, entry in self._marked()] + peaks
        room = {"most_bytes": _BESIDE_BYTES} if beside else {}
        steps = list(zip(device.rounds.boundaries, device.rounds.steps, strict=False))[:_MOST_STEPS]
        parts = [[f"k-{part.colour.variable}", part.opacity, part.label] for part in live.parts]
        return packed(device, bands, self.axis, stretch, marks, **room) | {
            "box": charts.box(charts.SMALL if beside else charts.HEIGHT),
            "zero": self.axis.zero,
            "at": device.at_entry,
            "first": device.first_entry,
            "told": told.rows.told,
            "parts": [*parts, [f"k-{palette.FREED.variable}", 1, self.freed]],
            "order": list(live.from_below),
            "categories": [[f"k-c-{name}", 1, CATEGORY_LABELS[name]] for name in CATEGORIES],
            "phases": [[f"p-{name}", 1, PHASE_LABELS[name]] for name in PHASES],
            "sites": [[f"k-s-{number}" if number < told.keys.top else "k-s-other", 1, text]
                      for number, text in enumerate(told.labels)] + [["k-s-other", 1, OTHER_LINES]],
            "limit": device.oom.limit.low if figure.limit and device.oom is not None else None,
            "ooms": apart(self._failed, device.history.entries)[::-1],
            "steps": [[begin, plain_name(step.name)] for begin, step in steps],
            "close": None if stretch is None else list(stretch),
        }  # fmt: skip
