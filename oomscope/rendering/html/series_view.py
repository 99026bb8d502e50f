"""The figure of a whole run: what its steps left allocated, where they go back further than the trace."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.passes.series import UNKNOWN, Series, series_of
from oomscope.frozen import frozen
from oomscope.model import IntArray
from oomscope.rendering.html import palette
from oomscope.rendering.html.charts import LEFT, RIGHT, WIDTH, bytes_axis, canvas
from oomscope.rendering.html.svg import StyleSheet, inline_svg, settings
from oomscope.wording.series import series_text, unit_of

_HEIGHT = 210.0
_MOST_POINTS = 400
_LEAST_ROWS = 3


@frozen
class SeriesView:
    """The drawing, what it says in words, and whether peaks are in it."""

    figure: Markup
    text: str
    has_peaks: bool


def series_view(findings: Findings, device: DeviceFindings, sheet: StyleSheet) -> SeriesView | None:
    """The run's steps; None where they tell no more than the trace, which the other figures show."""
    series = series_of(findings.snapshot, device.history)
    if series is None or len(series) < _LEAST_ROWS or not _goes_back_further(series, device):
        return None
    text = series_text(series)
    with settings("fig-run"):
        figure = inline_svg(_draw(series), "fig-run", "Memory over the whole run", text, sheet)
    return SeriesView(figure, text, bool((series.peak != UNKNOWN).any()))


def _goes_back_further(series: Series, device: DeviceFindings) -> bool:
    trace = device.history.trace
    if not len(trace) or not trace.timed:
        return True
    return int(np.count_nonzero(series.end_us < trace.time_us[0])) >= _LEAST_ROWS


def _draw(series: Series) -> Figure:
    figure, axes = canvas(WIDTH, _HEIGHT)
    axes.set_position((LEFT / WIDTH, 40 / _HEIGHT, (RIGHT - LEFT) / WIDTH, 156 / _HEIGHT))
    edges = np.unique(np.linspace(0, len(series), min(len(series), _MOST_POINTS) + 1).astype(np.int64))
    starts = edges[:-1]
    at = (series.end_us[edges[1:] - 1] - series.begin_us.min()).astype(np.float64)
    microseconds, unit = unit_of(int(at[-1]))
    at /= microseconds
    # Of the rows that share a point the highest, so that no spike is lost.
    allocated, reserved, peak = (
        np.maximum.reduceat(column, starts) for column in (series.allocated, series.reserved, series.peak)
    )
    axes.fill_between(at, _known(allocated), 0, color=palette.SOFT_BAR.light, linewidth=0)
    axes.plot(at, _known(allocated), color=palette.BAR.light, linewidth=1.4)
    axes.plot(at, _known(reserved), color=palette.RESERVED.light, linewidth=1.0)
    axes.plot(at, _known(peak), color=palette.ALARM.light, linewidth=0, marker=".", markersize=3)
    highest = max(int(column.max()) for column in (allocated, reserved, peak))
    axes.set_xlim(0, float(at[-1]) if at[-1] > 0 else 1.0)
    axes.set_ylim(0, max(highest, 1) * 1.06)
    bytes_axis(axes.yaxis, max(highest, 1), 5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8))
    axes.set_xlabel(f"since the first recorded step ({unit})", color=palette.QUIET.light, labelpad=3)
    return figure


def _known(column: IntArray) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.where(column == UNKNOWN, np.nan, column.astype(np.float64))
