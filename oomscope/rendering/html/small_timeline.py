"""The small timeline of the first screen: what is live at the instant, when it came, against the limit.

It is stretched to the width of any screen, so that its words stand beside it: text would be stretched as well.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.lean_dataclass import dataclass
from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray
from oomscope.rendering.html import palette
from oomscope.rendering.html.chart_data import TimeAxis, bytes_by_key, instants, time_axis
from oomscope.rendering.html.live_parts import LiveParts
from oomscope.rendering.html.svg import StyleSheet, inline_svg, settings
from oomscope.units import format_bytes, format_count, format_duration, plural
from oomscope.wording.instants import moment_words
from oomscope.wording.loops import pass_word
from oomscope.wording.page import given_back

WIDTH, HEIGHT = 1000.0, 120.0
_BUCKETS = 130
_MOST_STEPS = 60
_MOST_MARKED = 12
"""Failures, the last ones."""
LABEL_ROOM = 0.14
"""Of the width: the words "12 earlier OOMs" with air around them."""
_NEAR = 2.5
"""A limit above so many times the highest value would press all else flat."""


@dataclass(frozen=True, slots=True)
class Strip:
    """The drawing with the words around it; places are per cent of its width and height.

    Attributes:
        svg: the drawing, without text.
        begin: what stands at its left end.
        end: the moment at its right end.
        limit: the limit in words with its height; None where it is not drawn.
        mark: where the failure or the peak stands, with its word; None where neither is shown.
        earlier: where earlier failures stand, with a word for those that stand close together.
        is_oom: whether `mark` is a failure.
        freed: what is called that was given back before the instant; empty where nothing of it is drawn.
        shaded: what the bands behind are; empty where none are drawn.
    """

    svg: Markup
    begin: str
    end: str
    limit: tuple[str, str] | None
    mark: tuple[str, str] | None
    earlier: tuple[tuple[str, str], ...]
    is_oom: bool
    freed: str
    shaded: str


def draw_strip(findings: Findings, device: DeviceFindings, held: LiveParts, sheet: StyleSheet) -> Strip | None:
    """The timeline of `device` by the parts of what is live at the instant; None without a history."""
    history = device.history
    if history.entries < 2:
        return None
    zero = moment_words(findings)
    last = history.entries - 1
    # By entries, never by time: the step that failed is often the last instant of a long wait.
    numbers = np.arange(history.entries, dtype=np.float64)
    at = instants(history.curves.allocated[1:], numbers, 0, last, _BUCKETS)
    marked = np.array([device.at_entry, *(oom.entry for oom in device.ooms[-_MOST_MARKED:])], np.int64)
    at = np.unique(np.concatenate([at, marked[(marked >= 0) & (marked <= last)]]))
    bands = bytes_by_key(
        history.lifetimes.born, history.lifetimes.freed, history.size, held.key, len(held.parts) + 1, at
    )
    highest = int(bands.sum(axis=0).max(initial=1))
    limit = device.oom.limit.low if device.oom is not None and device.oom.limit.low > 0 else None
    limit = limit if limit is not None and limit < _NEAR * highest else None
    top = 1.04 * max(highest, limit or 0)
    has_steps = 0 < len(device.steps.boundaries) <= _MOST_STEPS
    with settings("strip"):
        figure = _draw(device, held, at, bands, limit, top, has_steps=has_steps)
        svg = inline_svg(figure, "strip", "Allocated memory over time", _said(at, bands, device), sheet)
    oom = device.oom
    stands = oom.entry if oom is not None else device.at_entry if findings.at.kind == "peak" else -1
    word = "OOM" if oom is not None else "peak"
    return Strip(
        Markup(str(svg).replace('class="fig"', 'class="strip" preserveAspectRatio="none"', 1)),  # noqa: S704 - ours
        _begin(time_axis(history, device.at_entry, zero), zero),
        zero if device.at_entry == last else "end of the recording",
        (f"limit {format_bytes(limit)}", _percent(1 - limit / top)) if limit is not None else None,
        (_percent(stands / last), word) if 0 <= stands <= last else None,
        _earlier(device, last),
        oom is not None,
        given_back(zero, is_last=device.at_entry == last) if bands[-1].any() else "",
        f"shaded: every other {pass_word(device)[0]}" if has_steps else "",
    )


def _draw(
    device: DeviceFindings,
    held: LiveParts,
    at: IntArray,
    bands: IntArray,
    limit: int | None,
    top: float,
    *,
    has_steps: bool,
) -> Figure:
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    x = at.astype(np.float64)
    axes.set_xlim(float(x[0]), float(x[-1]) if x[-1] > x[0] else float(x[0]) + 1)
    axes.set_ylim(0, top)
    if has_steps:
        _steps(axes, device.steps.boundaries, int(at[-1]))
    # From below: the smallest part first, the largest and what was freed on top.
    floor = np.zeros(len(at), np.int64)
    for number in held.from_below:
        if bands[number].any():
            part = held.parts[number] if number < len(held.parts) else None
            colour, opacity = (part.colour, part.opacity) if part is not None else (palette.FREED, 1.0)
            corners, low, high = np.repeat(x, 2)[1:], _flat(floor), _flat(floor + bands[number])
            if opacity < 1:  # nothing of what lies behind shows through
                axes.fill_between(corners, low, high, color=palette.PAPER.light, linewidth=0)
            axes.fill_between(corners, low, high, color=colour.light, alpha=opacity, linewidth=0)
            floor = floor + bands[number]
    if limit is not None:
        axes.axhline(limit, color=palette.LIMIT.light, linewidth=1.2, dashes=(6, 3))
    if device.oom is None:
        axes.axvline(float(device.at_entry), color=palette.INK.light, linewidth=1.0, dashes=(2, 2))
    for oom in device.ooms[-_MOST_MARKED:]:
        if 0 <= oom.entry <= at[-1]:
            axes.axvline(float(oom.entry), color=palette.ALARM.light, linewidth=1.6)
    return figure


def _flat(values: IntArray) -> FloatArray:
    """The corners of a curve that keeps each value until the next instant."""
    return np.repeat(values.astype(np.float64), 2)[:-1]


def _steps(axes: Axes, boundaries: tuple[int, ...], last: int) -> None:
    """Every other step as a faint band."""
    places = [float(min(max(entry, 0), last)) for entry in boundaries] + [float(last)]
    for begin, end in list(pairwise(places))[::2]:
        axes.axvspan(begin, end, color=palette.BAND.light, linewidth=0, zorder=0)


def _said(at: IntArray, bands: IntArray, device: DeviceFindings) -> str:
    total = bands.sum(axis=0)
    return (
        f"Entries {format_count(int(at[0]))} to {format_count(int(at[-1]))}: allocated memory from "
        f"{format_bytes(int(total[0]))} to {format_bytes(int(total[-1]))}, at most {format_bytes(int(total.max()))}; "
        f"{plural(len(device.steps.boundaries), *pass_word(device))}."
    )


def _earlier(device: DeviceFindings, last: int) -> tuple[tuple[str, str], ...]:
    """Earlier failures: one label for all whose own would overprint each other."""
    groups: list[list[int]] = []
    for entry in sorted(oom.entry for oom in device.ooms[-_MOST_MARKED:] if oom is not device.oom):
        if not 0 <= entry <= last or (device.oom is not None and entry == device.oom.entry):
            continue
        if groups and entry - groups[-1][-1] < LABEL_ROOM * last:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return tuple(
        (_percent(group[0] / last), "an earlier OOM" if len(group) == 1 else f"{len(group)} earlier OOMs")
        for group in groups
    )


def _begin(axis: TimeAxis, zero: str) -> str:
    if axis.seconds is None:
        return "start"
    return f"start, {format_duration(abs(float(axis.seconds[0])) * 1e6)} before {zero}"


def _percent(value: float) -> str:
    return f"{100 * min(max(value, 0.0), 1.0):.1f}"
