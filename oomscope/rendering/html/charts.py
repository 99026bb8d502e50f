"""The figures that matplotlib draws: memory over time, per step, by lifetime, under other settings.

No name of a snapshot enters a figure: legends and labels stand beside it in the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from oomscope.frozen import frozen
from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray
from oomscope.rendering.html import palette
from oomscope.rendering.html.chart_data import TimeAxis, staircase
from oomscope.rendering.html.failures import apart
from oomscope.units import GIB, KIB, MIB, TIB, format_duration

WIDTH, HEIGHT = 840.0, 320.0
SMALL = 190.0
"""The height of a figure over time that stands beside others."""

LEFT, RIGHT, TOP, FOOT = 58.0, 826.0, 22.0, 48.0
"""Where the axes stand in figures over time, in units of the view box; `FOOT` is the room below them."""

MOST_BANDS = 80
LABEL_ROOM = 0.1
"""Of the width: the words "12 OOMs" with air around them."""
NEAR = 1.6
"""A limit above so many times the highest value would press all else into the lower part of the figure."""


@frozen(eq=False)
class Layer:
    """One band of a stacked figure."""

    colour: palette.Colour
    bytes: IntArray
    opacity: float = 1.0


@frozen
class Moment:
    """A moment worth a sign: an OOM (with the bytes asked for) or the peak."""

    x: float
    kind: str
    bytes: int
    base: int = 0
    """Allocated bytes when the request failed."""


@frozen(eq=False)
class MemoryOverTime:
    """What one figure over time shows; all arrays have one value an instant.

    Attributes:
        x: the entries of the instants.
        axis: tells when the entries of the trace were.
        layers: stacked from below.
        active, reserved: lines.
        limit: what may be reserved, drawn as a line; None: not known, or not near (see `is_near`).
        bands: where steps begin.
        names: what each of them is called; empty where its name is not fit for a figure.
        marks: the OOMs that were judged, and the peak.
        failed: where requests failed, all of them.
        first: the number of the trace's first entry, from which `x`, `bands` and `marks` count.
    """

    x: FloatArray
    axis: TimeAxis
    layers: Sequence[Layer]
    active: IntArray
    reserved: IntArray
    limit: int | None
    bands: Sequence[float]
    names: Sequence[str]
    marks: Sequence[Moment]
    failed: Sequence[int] = ()
    first: int = 0


def box(height: float) -> list[float]:
    """Width and height of a figure over time, then the left, right, top and bottom of its axes."""
    return [WIDTH, height, LEFT, RIGHT, TOP, height - FOOT]


def highest_value(view: MemoryOverTime) -> int:
    """The most bytes that `view` shows, but for the limit."""
    left, right = float(view.x[0]), float(view.x[-1])
    top = np.sum([layer.bytes for layer in view.layers], axis=0, dtype=np.int64)
    highest = max(int(view.reserved.max(initial=1)), int(top.max(initial=1)))
    asked = [mark.base + mark.bytes for mark in view.marks if mark.kind == "oom" and left <= mark.x <= right]
    # A request for terabytes must not press everything else flat.
    return max([highest, *(end for end in asked if end < 2 * highest)])


def is_near(limit: int, view: MemoryOverTime) -> bool:
    """Whether a line at `limit` leaves what `view` shows most of the figure's height."""
    return limit < NEAR * highest_value(view)


def axis_top(view: MemoryOverTime) -> float:
    """Where the axis of bytes ends."""
    return max(highest_value(view), view.limit or 0) * 1.09


def timeline(view: MemoryOverTime, height: float = HEIGHT) -> Figure:
    """Allocated memory as stacked bands, with lines for active and reserved memory."""
    figure, axes = canvas(WIDTH, height)
    axes.set_position((LEFT / WIDTH, FOOT / height, (RIGHT - LEFT) / WIDTH, (height - FOOT - TOP) / height))
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
            if layer.opacity < 1:  # nothing of what lies behind shows through
                axes.fill_between(x, y, 0, color=palette.PAPER.light, linewidth=0)
            axes.fill_between(x, y, 0, color=layer.colour.light, alpha=layer.opacity, linewidth=0)
    _active(axes, view.x, view.active, top)
    _reserved(axes, view.x, view.reserved)
    highest = max(highest_value(view), view.limit or 0)
    if view.limit is not None:
        axes.axhline(view.limit, color=palette.LIMIT.light, linewidth=1.1, dashes=(6, 3))
    _failures(axes, view.failed, left, right)
    _marks(axes, view.marks, highest, left, right)
    axes.set_ylim(0, axis_top(view))
    bytes_axis(axes.yaxis, highest, 6 if height > SMALL else 4)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _moment(value, view)))
    axis = view.axis
    below = f"trace entry, and its time relative to {axis.zero}" if axis.time_us is not None else "trace entry"
    axes.set_xlabel(below, color=palette.QUIET.light, labelpad=3)
    return figure


def _moment(entry: float, view: MemoryOverTime) -> str:
    """A tick of the axis: the number of the entry, and below it when that was."""
    number = round(entry)
    when = view.axis.after_zero(number - view.first)
    if when is None:
        return f"{number:,}"
    return f"{number:,}\n{'−' if when < 0 else ''}{format_duration(abs(when))}"


def _bands(axes: Axes, view: MemoryOverTime, right: float) -> None:
    """Every other step as a faint band; with few steps also their numbers."""
    if not 0 < len(view.bands) <= MOST_BANDS:
        return
    edges, span = [*view.bands, right], right - float(view.x[0])
    for number, (begin, end) in enumerate(pairwise(edges)):
        if number % 2 == 0:
            axes.axvspan(begin, end, color=palette.BAND.light, linewidth=0, zorder=0)
        # Numbers that would run into each other, or into the word above an OOM, are left out.
        middle = (begin + end) / 2
        crowded = end - begin < 0.02 * span or any(abs(middle - place) < LABEL_ROOM * span for place in view.failed)
        if len(view.bands) <= 24 and not crowded:
            axes.annotate(
                view.names[number], (middle, 1), xycoords=("data", "axes fraction"),
                xytext=(0, 3), textcoords="offset points", ha="center", va="bottom",
                color=palette.QUIET.light, fontsize=8,
            )  # fmt: skip


def _failures(axes: Axes, places: Sequence[int], left: float, right: float) -> None:
    """A line for each failure that has room for one, and above the lines how many failures there are."""
    shown = [place for place in places if left <= place <= right]
    for place in apart(shown, int(right - left)):
        axes.axvline(place, color=palette.ALARM.light, linewidth=1.1, clip_on=False)
    _oom_labels(axes, shown, left, right)


def _marks(axes: Axes, marks: Sequence[Moment], highest: int, left: float, right: float) -> None:
    for mark in marks:
        if not left <= mark.x <= right:
            continue
        if mark.kind == "peak":
            axes.plot([mark.x], [mark.bytes], "o", ms=4.5, color=palette.INK.light, mec=palette.PAPER.light, mew=1)
            continue
        asked = min(mark.base + mark.bytes, int(highest * 1.09))
        axes.plot(
            [mark.x, mark.x], [mark.base, asked],
            color=palette.ALARM.light, linewidth=7, alpha=0.6, solid_capstyle="butt", clip_on=False,
        )  # fmt: skip


def _oom_labels(axes: Axes, places: Sequence[int], left: float, right: float) -> None:
    """One label for all failures whose own would overprint each other."""
    groups: list[list[int]] = []
    for x in places:
        if groups and x - groups[-1][-1] < LABEL_ROOM * (right - left):
            groups[-1].append(x)
        else:
            groups.append([x])
    for group in groups:
        x = group[-1]
        near_right, near_left = x > left + 0.8 * (right - left), x < left + 0.2 * (right - left)
        axes.annotate(
            "OOM" if len(group) == 1 else f"{len(group)} OOMs",
            (x, 1), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
            ha="right" if near_right else "left" if near_left else "center", va="bottom",
            color=palette.ALARM.light, fontweight="bold",
        )  # fmt: skip


def _reserved(axes: Axes, x: FloatArray, values: IntArray) -> None:
    xs, ys = staircase(x, values)
    axes.plot(xs, ys, color=palette.RESERVED.light, linewidth=1.4)


def _active(axes: Axes, x: FloatArray, values: IntArray, allocated: IntArray) -> None:
    """Dashes where blocks wait for a stream; elsewhere they would only repeat the edge of what is allocated."""
    if (values != allocated).any():
        apart = np.where(values != allocated, values.astype(np.float64), np.nan)
        (line,) = axes.plot(
            np.repeat(x, 2)[1:], np.repeat(apart, 2)[:-1], color=palette.ACTIVE.light, linewidth=1.1
        )  # fmt: skip
        line.set_dashes((2.2, 1.4))


def steps(peaks: Sequence[int], ends: Sequence[int], names: Sequence[str], word: str = "step") -> Figure:
    """The high-water mark of each step, and what was left when it ended; `names` may be empty texts."""
    figure, axes = canvas(WIDTH, 210)
    axes.set_position((LEFT / WIDTH, 40 / 210, (RIGHT - LEFT) / WIDTH, 156 / 210))
    number = np.arange(len(peaks))
    if len(peaks) <= 120:
        width = _bar_width(len(peaks))
        axes.bar(number, peaks, width=width, color=palette.SOFT_BAR.light, linewidth=0)
        axes.bar(number, ends, width=width, color=palette.BAR.light, linewidth=0)
    else:
        axes.fill_between(number, peaks, 0, color=palette.SOFT_BAR.light, linewidth=0, step="mid")
        axes.fill_between(number, ends, 0, color=palette.BAR.light, linewidth=0, step="mid")
    axes.set_xlim(-0.6, len(peaks) - 0.4)
    highest = max(*peaks, *ends, 1)
    axes.set_ylim(0, highest * 1.06)
    bytes_axis(axes.yaxis, highest, 5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: names[round(at)] if 0 <= round(at) < len(names) else ""))
    axes.set_xlabel(word, color=palette.QUIET.light, labelpad=3)
    return figure


def _bar_width(bars: int) -> float:
    """The width of a bar on an axis of whole numbers: a few bars do not become walls."""
    return min(0.78, 0.08 * bars)


def lifetimes(edges: Sequence[str], freed: IntArray, live: IntArray) -> Figure:
    """Bytes allocated, by how long they lived."""
    figure, axes = canvas(WIDTH, 200)
    axes.set_position((LEFT / WIDTH, 46 / 200, (RIGHT - LEFT) / WIDTH, 142 / 200))
    at, width = np.arange(len(freed)), _bar_width(len(freed))
    axes.bar(at, freed, width=width, color=palette.SOFT_BAR.light, linewidth=0)
    axes.bar(at, live, width=width, bottom=freed, color=palette.BAR.light, linewidth=0)
    axes.set_xticks(at, edges)
    axes.set_xlim(-0.6, len(freed) - 0.4)
    highest = int((freed + live).max(initial=1))
    axes.set_ylim(0, highest * 1.06)
    bytes_axis(axes.yaxis, highest, 4)
    axes.set_xlabel("from allocation to free", color=palette.QUIET.light, labelpad=3)
    return figure


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of this size, in units of the view box, in the look of the page."""
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


def bytes_axis(axis: Axis, highest: int, most: int = 6, lowest: int = 0) -> None:
    """Label `axis` from `lowest` on in the unit that suits `highest` bytes, with at most so many ticks."""
    unit, name = next(
        ((u, n) for u, n in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if highest >= u), (1, "B")
    )
    locator = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10])
    ticks = [tick * unit for tick in locator.tick_values(lowest / unit, highest / unit)]
    axis.set_ticks([tick for tick in ticks if lowest <= tick <= highest * 1.06])
    axis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else f"{value / unit:.4g} {name}"))
