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
from oomscope.frozen import frozen
from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray
from oomscope.rendering.html import palette
from oomscope.rendering.html.chart_data import TimeAxis, bytes_by_key, instants, time_axis
from oomscope.rendering.html.failures import apart, failed_up_to
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
"""Failures, the last ones, at which the bands are exact."""
LABEL_ROOM = 0.14
"""Of the width: the words "12 earlier OOMs" with air around them."""
_NEAR = 2.5
"""A limit above so many times the highest value would press all else flat."""
_WORTH_SHOWING = 0.03
"""Of the highest value: where PyTorch held less than that free when the request failed, the picture goes without."""
_FAILING = 0.25
"""Of the width at least: the pass that failed, where that is what the page is about."""
_HANDLING = 0.02
"""Of all entries; so many may come of letting go of what the failed call held."""
_OF_PASSES = ("growth", "retained")
"""Causes that all passes tell of."""
_ROOM, _MOST_ASKED = 0.012, 0.4
"""For what is there at the last entry and the request on it: of the width, and at most of the height over the limit."""


@frozen
class Strip:
    """The drawing with the words around it; places are per cent of its width and height.

    Attributes:
        svg: the drawing, without text.
        begin: what stands at its left end.
        end: the moment at its right end.
        limit: the limit in words with its height; None where it is not drawn.
        mark: where the failure or the peak stands, with its word; None where neither is shown, or it is the right end.
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
    last = _last(device)
    # By entries, never by time: the step that failed is often the last instant of a long wait.
    at = instants(history.curves.allocated[1:], 0, last, _BUCKETS)
    failed = failed_up_to(device, last)
    marked = [one for one in (device.at_entry, *failed[-_MOST_MARKED:]) if 0 <= one <= last]
    at = np.unique(np.concatenate([at, np.array(marked, np.int64)]))
    bands = bytes_by_key(
        history.lifetimes.born, history.lifetimes.freed, history.size, held.key, len(held.parts) + 1, at
    )
    picture = _scaled(device, at, bands, history.curves.reserved[1:][at])
    axis = _axis(device, last)
    has_steps = 1 < len(device.rounds.boundaries) <= _MOST_STEPS
    with settings("strip"):
        figure = _draw(device, held, picture, axis, failed, has_steps=has_steps)
        svg = inline_svg(figure, "strip", "Allocated memory over time", _said(at, bands, device), sheet)
    limit, top = picture.limit, picture.top
    oom = device.oom
    stands = oom.entry if oom is not None else device.at_entry if findings.at.kind == "peak" else -1
    word = "OOM" if oom is not None else "peak"
    return Strip(
        Markup(str(svg).replace('class="fig"', 'class="strip" preserveAspectRatio="none"', 1)),  # noqa: S704 - ours
        _begin(time_axis(history, device.at_entry, zero), zero),
        zero if device.at_entry == last else f"end of the {'recording' if device.part is None else 'part shown'}",
        (f"limit {format_bytes(limit)}", _percent(1 - limit / top)) if limit is not None else None,
        (_percent(axis.place(stands) / _right(at)), word) if 0 <= stands < last else None,
        _earlier(device, failed, axis, _right(at)),
        oom is not None,
        given_back(zero, is_last=device.at_entry == last) if bands[-1].any() else "",
        f"shaded: every other {pass_word(device)[0]}" if has_steps else "",
    )


def _last(device: DeviceFindings) -> int:
    """Where the picture ends: at the failure where next to nothing follows it, such as its handling."""
    last, oom = device.history.entries - 1, device.oom
    if oom is not None and oom.entry == device.at_entry and last - oom.entry < _HANDLING * last:
        return int(oom.entry)
    return last


@frozen
class _Axis:
    """Where entries stand, in entries: those since `begin` have what is right of `middle`.

    Attributes:
        begin: the entry from which on the axis is another.
        middle: where that one stands.
        last: the last entry, at the right end.
    """

    begin: int
    middle: float
    last: int

    def place(self, entry: int) -> float:
        """Where one entry stands."""
        return float(self.places(np.array([entry]))[0])

    def places(self, entries: IntArray) -> FloatArray:
        """float64[entries]: where each stands."""
        return np.interp(entries, [0, self.begin, self.last], [0.0, self.middle, float(self.last)])


def _axis(device: DeviceFindings, last: int) -> _Axis:
    """Every entry as wide as any other; where one pass is what the page is about, that one is not a sliver."""
    passes = device.rounds.boundaries
    if device.oom is None or not passes or device.oom.verdict.cause in _OF_PASSES or not 0 < passes[-1] < last:
        return _Axis(last, float(last), last)
    return _Axis(passes[-1], min(float(passes[-1]), (1 - _FAILING) * last), last)


@frozen(eq=False)
class _Picture:
    """What is drawn, in bytes.

    Attributes:
        at: int64[instants], the entries.
        bands: int64[parts + 1, instants]; the last is what was freed before the instant of the page.
        free: int64[instants], free inside PyTorch's segments; None where that is little.
        asked: the bottom and the top of the failed request, which stands on what PyTorch had reserved.
        limit: None where it is not drawn.
        top: of the picture.
    """

    at: IntArray
    bands: IntArray
    free: IntArray | None
    asked: tuple[int, int] | None
    limit: int | None
    top: float


def _scaled(device: DeviceFindings, at: IntArray, bands: IntArray, reserved: IntArray) -> _Picture:
    allocated, oom = bands.sum(axis=0), device.oom
    highest = int(allocated.max(initial=1))
    spare = 0 if oom is None else oom.totals.reserved - oom.totals.active
    free = np.maximum(reserved - allocated, 0) if spare > _WORTH_SHOWING * highest else None
    if free is not None:
        highest = max(highest, int((allocated + free).max()))
    limit = oom.limit.low if oom is not None and oom.limit.low > 0 else None
    limit = limit if limit is not None and limit < _NEAR * highest else None
    top = max(highest, limit or 0)
    asked = None
    if oom is not None and 0 <= oom.entry <= at[-1]:
        asked = oom.totals.reserved, oom.totals.reserved + oom.requested  # no free piece served it
        top = max(top, int(min(asked[1], (1 + _MOST_ASKED) * top)))
    return _Picture(at, bands, free, asked, limit, 1.04 * top)


def _draw(
    device: DeviceFindings, held: LiveParts, picture: _Picture, axis: _Axis, failed: list[int], *, has_steps: bool
) -> Figure:
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    x = axis.places(picture.at)
    axes.set_xlim(float(x[0]), _right(picture.at))
    axes.set_ylim(0, picture.top)
    if has_steps:
        _steps(axes, device.rounds.boundaries, axis)
    _bands(axes, held, picture, np.append(np.repeat(x, 2)[1:], _right(picture.at)))
    if device.oom is None:
        axes.axvline(axis.place(device.at_entry), color=palette.INK.light, linewidth=1.0, dashes=(2, 2))
    for entry in apart(failed, int(picture.at[-1])):
        axes.axvline(_ended(entry, axis, picture.at), color=palette.ALARM.light, linewidth=1.6)
    if picture.asked is not None and device.oom is not None:
        _asked(axes, picture.asked, axis.place(device.oom.entry), picture.top)
    if picture.limit is not None:
        axes.axhline(picture.limit, color=palette.LIMIT.light, linewidth=1.2, dashes=(6, 3))
    return figure


def _bands(axes: Axes, held: LiveParts, picture: _Picture, corners: FloatArray) -> None:
    """From below: the smallest part first, then the larger ones, what was freed, and what PyTorch held free."""
    floor = np.zeros(len(picture.at), np.int64)
    for number in held.from_below:
        band = picture.bands[number]
        if band.any():
            part = held.parts[number] if number < len(held.parts) else None
            colour, opacity = (part.colour, part.opacity) if part is not None else (palette.FREED, 1.0)
            low, high = _flat(floor), _flat(floor + band)
            if opacity < 1:  # nothing of what lies behind shows through
                axes.fill_between(corners, low, high, color=palette.PAPER.light, linewidth=0)
            axes.fill_between(corners, low, high, color=colour.light, alpha=opacity, linewidth=0)
            floor = floor + band
    if picture.free is not None:
        axes.fill_between(
            corners, _flat(floor), _flat(floor + picture.free), color=palette.FREE_INSIDE.light, linewidth=0
        )


def _asked(axes: Axes, asked: tuple[int, int], entry: float, top: float) -> None:
    """The failed request as a block on what was reserved at that entry; drawn inside the picture."""
    left, right = axes.get_xlim()
    axes.fill_between(
        [entry, max(entry + 1, entry + _ROOM * (right - left))], asked[0], min(asked[1], top),
        facecolor=palette.ALARM.light, edgecolor=palette.PAPER.light, linewidth=0.8,
    )  # fmt: skip


def _flat(values: IntArray) -> FloatArray:
    """The corners of a curve that keeps each value until the next instant, and the last one to the end."""
    return np.repeat(values.astype(np.float64), 2)


def _right(at: IntArray) -> float:
    """The right end of the picture."""
    return float(at[-1]) + max(_ROOM * float(at[-1] - at[0]), 1.0)


def _ended(entry: int, axis: _Axis, at: IntArray) -> float:
    """Where a failure is drawn: the last entry of the picture ends with it, and nothing is to the right of it."""
    return _right(at) if entry == axis.last else axis.place(entry)


def _steps(axes: Axes, boundaries: tuple[int, ...], axis: _Axis) -> None:
    """Every other step as a faint band."""
    places = [axis.place(entry) for entry in boundaries] + [float(axis.last)]
    for begin, end in list(pairwise(places))[::2]:
        axes.axvspan(begin, end, color=palette.BAND.light, linewidth=0, zorder=0)


def _said(at: IntArray, bands: IntArray, device: DeviceFindings) -> str:
    total = bands.sum(axis=0)
    return (
        f"Entries {format_count(int(at[0]))} to {format_count(int(at[-1]))}: allocated memory from "
        f"{format_bytes(int(total[0]))} to {format_bytes(int(total[-1]))}, at most {format_bytes(int(total.max()))}; "
        f"{plural(len(device.rounds.boundaries), *pass_word(device))}."
    )


def _earlier(device: DeviceFindings, failed: list[int], axis: _Axis, right: float) -> tuple[tuple[str, str], ...]:
    """Earlier failures: one label where several would overprint."""
    groups: list[list[float]] = []
    for entry in failed:
        if device.oom is not None and entry == device.oom.entry:
            continue
        place = axis.place(entry)
        if groups and place - groups[-1][-1] < LABEL_ROOM * axis.last:
            groups[-1].append(place)
        else:
            groups.append([place])
    return tuple(
        (_percent(group[0] / right), "an earlier OOM" if len(group) == 1 else f"{len(group)} earlier OOMs")
        for group in groups
    )


def _begin(axis: TimeAxis, zero: str) -> str:
    before = axis.after_zero(0)
    return "start" if before is None else f"from {format_duration(abs(before))} before {zero} (time not to scale)"


def _percent(value: float) -> str:
    return f"{100 * min(max(value, 0.0), 1.0):.1f}"
