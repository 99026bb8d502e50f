"""The figure of a job's ranks: the peak of each as a bar; of very many, how many have which peak.

No name of a snapshot enters it, only numbers of ranks.
"""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from oomscope.analysis.compare.ranks import PeakSpread, Ranks, number
from oomscope.model import IntArray
from oomscope.rendering.html import palette
from oomscope.rendering.html.charts import bytes_axis, canvas
from oomscope.rendering.html.svg import StyleSheet, inline_svg, settings
from oomscope.units import format_bytes, plural

WIDTH, HEIGHT = 480.0, 270.0
MOST_BARS = 64
"""Ranks that have a bar each; of more the distribution is drawn."""
_BINS, _NAMED = 48, 3
_LEFT, _RIGHT, _FOOT, _HEAD = 58.0, 8.0, 40.0, 20.0
_USUAL, _APART = palette.BAR, palette.ALARM


def rank_figure(found: Ranks, peaks: PeakSpread, sheet: StyleSheet) -> Markup:
    """The figure: outliers in a colour of their own, the median as a line, what is not far from it as a band."""
    known = [one for one in found.ranks if one.peak_allocated is not None]
    ranks = [number(one) for one in known]
    values = np.array([one.peak_allocated for one in known], np.int64)
    far = {one.rank for one in found.outliers}
    apart = np.array([rank in far for rank in ranks], bool)
    with settings("fig-ranks"):
        figure, axes = canvas(WIDTH, HEIGHT)
        axes.set_position(
            (_LEFT / WIDTH, _FOOT / HEIGHT, (WIDTH - _LEFT - _RIGHT) / WIDTH, (HEIGHT - _FOOT - _HEAD) / HEIGHT)
        )
        if len(known) <= MOST_BARS:
            _bars(axes, ranks, values, apart, peaks, found.first)
        else:
            _distribution(axes, ranks, values, apart, peaks, [one.rank for one in found.outliers[:_NAMED]])
        return inline_svg(figure, "fig-ranks", "Peak of the ranks", _description(len(known), len(far), peaks), sheet)


def _description(count: int, apart: int, peaks: PeakSpread) -> str:
    return (
        f"{plural(count, 'rank')}: least {format_bytes(peaks.min)} on rank {peaks.min_rank}, "
        f"median {format_bytes(peaks.median)}, most {format_bytes(peaks.max)} on rank {peaks.max_rank}; "
        f"{plural(apart, 'outlier')}."
    )


def _band(peaks: PeakSpread, end: int) -> tuple[int, int]:
    """Between which peaks a rank is as the others, up to the `end` of the axis."""
    return max(peaks.median - peaks.apart, 0), min(peaks.median + peaks.apart, end)


def _bars(
    axes: Axes, ranks: list[int], values: IntArray, apart: np.ndarray, peaks: PeakSpread, first: int | None
) -> None:
    # A rank that is missing leaves a gap, unless there would be little else.
    x = ranks if ranks[-1] < 2 * len(ranks) else list(range(len(ranks)))
    axis_end = max(peaks.max, 1) * 1.1
    axes.axhspan(*_band(peaks, int(axis_end)), color=palette.FAINT.light, linewidth=0, zorder=0)
    for chosen, colour in ((~apart, _USUAL), (apart, _APART)):
        drawn = np.flatnonzero(chosen)
        axes.bar([x[at] for at in drawn], values[drawn], width=0.72, color=colour.light, linewidth=0)
    axes.axhline(peaks.median, color=palette.INK.light, linewidth=1.0, dashes=(4, 3))
    if first in ranks:
        at = ranks.index(first)
        axes.annotate(
            "first", (x[at], int(values[at])), (0, 3), textcoords="offset points", ha="center", color=_APART.light
        )
    axes.set_xlim(x[0] - 0.8, x[-1] + 0.8)
    axes.set_ylim(0, axis_end)
    bytes_axis(axes.yaxis, max(peaks.max, 1), 5)
    names = dict(zip(x, ranks, strict=True))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, steps=[1, 2, 4, 5, 8, 10], integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: str(names.get(round(value), ""))))
    axes.set_xlabel("rank", color=palette.QUIET.light, labelpad=3)


def _distribution(
    axes: Axes, ranks: list[int], values: IntArray, apart: np.ndarray, peaks: PeakSpread, named: list[int]
) -> None:
    low, high = peaks.min, max(peaks.max, peaks.min + 1)
    edges = np.linspace(low, high, _BINS + 1)
    usual = np.histogram(values[~apart], edges)[0]
    far = np.histogram(values[apart], edges)[0]
    width, highest = edges[1] - edges[0], int((usual + far).max())
    axes.axvspan(*_band(peaks, high), color=palette.FAINT.light, linewidth=0, zorder=0)
    axes.bar(edges[:-1], usual, width * 0.92, align="edge", color=_USUAL.light, linewidth=0)
    axes.bar(edges[:-1], far, width * 0.92, usual, align="edge", color=_APART.light, linewidth=0)
    axes.axvline(peaks.median, color=palette.INK.light, linewidth=1.0, dashes=(4, 3))
    _name_outliers(axes, ranks, values, named, edges, usual + far)
    # One rank among thousands must be seen: the axis is logarithmic beyond a few.
    axes.set_yscale("symlog", linthresh=2)
    axes.set_ylim(0, highest * 1.6)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_ticks([0, 1, *(10**power for power in range(1, 7) if 10**power <= highest)])
    axes.set_ylabel("ranks", color=palette.QUIET.light, labelpad=3)
    bytes_axis(axes.xaxis, high, 6, low)
    axes.set_xlim(low - width, high + width)
    axes.set_xlabel("peak", color=palette.QUIET.light, labelpad=3)


def _name_outliers(
    axes: Axes, ranks: list[int], values: IntArray, named: list[int], edges: np.ndarray, counts: IntArray
) -> None:
    """The numbers of the largest outliers, where they do not stand in each other's way."""
    taken: list[int] = []
    for rank in named:
        peak = int(values[ranks.index(rank)])
        at = min(int(np.searchsorted(edges, peak, side="right")) - 1, _BINS - 1)
        if all(abs(at - other) > _BINS // 6 for other in taken):
            taken.append(at)
            middle = (edges[at] + edges[at + 1]) / 2
            side = "right" if at > _BINS * 0.8 else "left" if at < _BINS * 0.2 else "center"
            axes.annotate(
                f"rank {rank}", (middle, counts[at]), (0, 3), textcoords="offset points", ha=side, color=_APART.light
            )
