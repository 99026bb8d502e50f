"""The figures that matplotlib draws: memory over time, per step, by lifetime, under other settings.

No name of a snapshot enters a figure: legends and labels stand beside it in the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray
from oomscope.rendering import palette
from oomscope.rendering.charts_data import staircase
from oomscope.units import GIB, KIB, MIB, TIB

WIDTH, HEIGHT = 840.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 826.0, 22.0, 282.0
"""Where the axes stand in figures over time, in units of the view box; the page's script relies on it."""

MOST_BANDS = 80


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One band of a stacked figure."""

    colour: palette.Colour
    bytes: IntArray


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment worth a sign: an OOM (with the bytes asked for) or the peak."""

    x: float
    kind: str
    bytes: int
    base: int = 0
    """Allocated bytes when the request failed."""


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """What one figure over time shows; all arrays have one value an instant.

    Attributes:
        x: where the instants stand: seconds relative to `zero`, or entries.
        in_seconds: which of both.
        zero: the words for the moment that seconds count from.
        layers: stacked from below.
        active, reserved: lines.
        limit: what may be reserved, None: not known or far away.
        bands: beginnings of steps, with the number of the first.
        marks: OOMs and the peak.
    """

    x: FloatArray
    in_seconds: bool
    zero: str
    layers: Sequence[Layer]
    active: IntArray
    reserved: IntArray
    limit: int | None
    bands: Sequence[float]
    first_step: int
    marks: Sequence[Mark]


def timeline(view: Timeline) -> Figure:
    """Allocated memory as stacked bands, with lines for active and reserved memory."""
    figure, axes = _canvas(WIDTH, HEIGHT)
    axes.set_position((LEFT / WIDTH, 1 - BOTTOM / HEIGHT, (RIGHT - LEFT) / WIDTH, (BOTTOM - TOP) / HEIGHT))
    left, right = float(view.x[0]), float(view.x[-1])
    if right <= left:
        left, right = left - 0.5, right + 0.5
    axes.set_xlim(left, right)
    _bands(axes, view, right)
    top = np.zeros(len(view.x), np.int64)
    tops = []
    for layer in view.layers:
        top = top + layer.bytes
        tops.append(top)
    # Painted from the top down, each band needs only its upper edge.
    for layer, edge in reversed(list(zip(view.layers, tops, strict=True))):
        if layer.bytes.any():
            x, y = staircase(view.x, edge)
            axes.fill_between(x, y, 0, color=layer.colour.light, linewidth=0)
    _line(axes, view.x, view.active, palette.ACTIVE, 0.9, (2.2, 1.4))
    _line(axes, view.x, view.reserved, palette.RESERVED, 1.4)
    highest = max(int(view.reserved.max(initial=1)), int(top.max(initial=1)))
    asked = [mark.base + mark.bytes for mark in view.marks if mark.kind == "oom" and left <= mark.x <= right]
    # A request for terabytes must not press everything else flat.
    highest = max([highest, *(end for end in asked if end < 2 * highest)])
    if view.limit is not None and view.limit < 1.6 * highest:
        highest = max(highest, view.limit)
        axes.axhline(view.limit, color=palette.LIMIT.light, linewidth=1.1, dashes=(6, 3))
    _marks(axes, view.marks, highest, left, right)
    axes.set_ylim(0, highest * 1.09)
    _bytes_axis(axes.yaxis, highest)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 2.5, 5, 10]))
    scale, unit = _time_unit(right - left) if view.in_seconds else (1.0, "")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value * scale)))
    label = f"{unit} relative to {view.zero}" if view.in_seconds else "trace entry"
    axes.set_xlabel(label, color=palette.QUIET.light, labelpad=4)
    return figure


def _time_unit(span: float) -> tuple[float, str]:
    for bound, scale, unit in ((0.002, 1e6, "microseconds"), (2.0, 1e3, "milliseconds"), (300.0, 1.0, "seconds")):
        if span < bound:
            return scale, unit
    return 1 / 60, "minutes"


def _bands(axes: Axes, view: Timeline, right: float) -> None:
    """Every other step as a faint band; with few steps also their numbers."""
    if not 0 < len(view.bands) <= MOST_BANDS:
        return
    edges = [*view.bands, right]
    for number, (begin, end) in enumerate(pairwise(edges)):
        if number % 2 == 0:
            axes.axvspan(begin, end, color=palette.BAND.light, linewidth=0, zorder=0)
        if len(view.bands) <= 24:
            axes.annotate(
                str(view.first_step + number), ((begin + end) / 2, 1), xycoords=("data", "axes fraction"),
                xytext=(0, 3), textcoords="offset points", ha="center", va="bottom",
                color=palette.QUIET.light, fontsize=8,
            )  # fmt: skip


def _marks(axes: Axes, marks: Sequence[Mark], highest: int, left: float, right: float) -> None:
    for mark in marks:
        if not left <= mark.x <= right:
            continue
        near_right = mark.x > left + 0.8 * (right - left)
        near_left = mark.x < left + 0.2 * (right - left)
        align = "right" if near_right else "left" if near_left else "center"
        if mark.kind == "peak":
            axes.plot([mark.x], [mark.bytes], "o", ms=4.5, color=palette.INK.light, mec=palette.PAPER.light, mew=1)
            continue
        axes.axvline(mark.x, color=palette.ALARM.light, linewidth=1.1, clip_on=False)
        asked = min(mark.base + mark.bytes, int(highest * 1.09))
        axes.plot(
            [mark.x, mark.x], [mark.base, asked],
            color=palette.ALARM.light, linewidth=7, alpha=0.6, solid_capstyle="butt", clip_on=False,
        )  # fmt: skip
        axes.annotate(
            "OOM", (mark.x, 1), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
            ha=align, va="bottom", color=palette.ALARM.light, fontweight="bold",
        )  # fmt: skip


def _line(
    axes: Axes,
    x: FloatArray,
    values: IntArray,
    colour: palette.Colour,
    width: float,
    dashes: tuple[float, float] | None = None,
) -> None:
    xs, ys = staircase(x, values)
    (line,) = axes.plot(xs, ys, color=colour.light, linewidth=width)
    if dashes:
        line.set_dashes(dashes)


def steps(peaks: Sequence[int], ends: Sequence[int], first: int) -> Figure:
    """The high-water mark of each step, and what was left when it ended."""
    figure, axes = _canvas(WIDTH, 210)
    axes.set_position((LEFT / WIDTH, 40 / 210, (RIGHT - LEFT) / WIDTH, 156 / 210))
    number = np.arange(first, first + len(peaks))
    if len(peaks) <= 120:
        axes.bar(number, peaks, width=0.78, color=palette.SOFT_BAR.light, linewidth=0)
        axes.bar(number, ends, width=0.78, color=palette.BAR.light, linewidth=0)
    else:
        axes.fill_between(number, peaks, 0, color=palette.SOFT_BAR.light, linewidth=0, step="mid")
        axes.fill_between(number, ends, 0, color=palette.BAR.light, linewidth=0, step="mid")
    axes.set_xlim(first - 0.6, first + len(peaks) - 0.4)
    highest = max(*peaks, *ends, 1)
    axes.set_ylim(0, highest * 1.06)
    _bytes_axis(axes.yaxis, highest, 4)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    axes.set_xlabel("step", color=palette.QUIET.light, labelpad=3)
    return figure


def lifetimes(edges: Sequence[str], freed: IntArray, live: IntArray) -> Figure:
    """Bytes allocated, by how long they lived."""
    figure, axes = _canvas(WIDTH, 190)
    axes.set_position((LEFT / WIDTH, 38 / 190, (RIGHT - LEFT) / WIDTH, 140 / 190))
    at = np.arange(len(freed))
    axes.bar(at, freed, width=0.8, color=palette.SOFT_BAR.light, linewidth=0)
    axes.bar(at, live, width=0.8, bottom=freed, color=palette.BAR.light, linewidth=0)
    axes.set_xticks(at, edges)
    axes.set_xlim(-0.6, len(freed) - 0.4)
    highest = int((freed + live).max(initial=1))
    axes.set_ylim(0, highest * 1.06)
    _bytes_axis(axes.yaxis, highest, 4)
    return figure


@dataclass(frozen=True, slots=True)
class Bar:
    """Peak reserved memory under one setting, with its range and a note; `failed` where a request did, or may."""

    label: str
    peak: int
    low: int
    high: int
    failed: bool
    note: str


def whatif(bars: Sequence[Bar], limit: int | None) -> Figure:
    """Peak reserved memory under each setting, against the limit."""
    height = 34.0 + 22.0 * len(bars)
    figure, axes = _canvas(WIDTH, height)
    axes.set_position((40 / WIDTH, 30 / height, (WIDTH - 190) / WIDTH, (height - 36) / height))
    for row, bar in enumerate(bars):
        colour = palette.SOFT_BAR if bar.failed else palette.BAR
        axes.barh(row, bar.peak, height=0.62, color=colour.light, linewidth=0)
        if bar.high > bar.low:
            axes.plot([bar.low, bar.high], [row, row], color=palette.INK.light, linewidth=1.2)
        axes.annotate(
            bar.note, (1, row), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
            va="center", color=palette.INK.light,
        )  # fmt: skip
    if limit is not None:
        axes.axvline(limit, color=palette.LIMIT.light, linewidth=1.1, dashes=(6, 3))
    highest = max([bar.high for bar in bars] + [bar.peak for bar in bars] + [limit or 0, 1])
    axes.set_xlim(0, highest * 1.02)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars])
    axes.grid(False)
    axes.grid(True, axis="x", color=palette.FAINT.light, linewidth=0.7)
    _bytes_axis(axes.xaxis, highest, 6)
    return figure


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    axes = figure.add_subplot()
    axes.set_axisbelow(True)
    axes.grid(True, axis="y", color=palette.FAINT.light, linewidth=0.7)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(palette.QUIET.light)
    axes.spines["bottom"].set_linewidth(0.8)
    axes.tick_params(length=0, pad=5, labelcolor=palette.QUIET.light)
    return figure, axes


def _bytes_axis(axis: Axis, highest: int, most: int = 6) -> None:
    unit, name = next(
        ((u, n) for u, n in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if highest >= u), (1, "B")
    )
    ticks = [tick * unit for tick in MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]).tick_values(0, highest / unit)]
    axis.set_ticks([tick for tick in ticks if 0 <= tick <= highest * 1.06])
    axis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else f"{value / unit:.4g} {name}"))


def _plain(value: float) -> str:
    return f"{round(value, 6):,.10g}".replace("-", "−")
