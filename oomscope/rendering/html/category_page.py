"""The page of a timeline by category: its figure, its table, and what it does not hold."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import FuncFormatter, MaxNLocator

from oomscope.analysis.timelines import TimelineFindings, thinned
from oomscope.frozen import frozen
from oomscope.model.category_timeline import MOSAIC
from oomscope.rendering.category_timeline import table
from oomscope.rendering.common.tables import Table
from oomscope.rendering.html import palette
from oomscope.rendering.html.chart_data import staircase
from oomscope.rendering.html.charts import FOOT, HEIGHT, LEFT, RIGHT, TOP, WIDTH, bytes_axis, canvas
from oomscope.rendering.html.one_file import framed, page_environment
from oomscope.rendering.html.svg import StyleSheet, inline_svg, settings
from oomscope.units import format_duration
from oomscope.version import __version__
from oomscope.wording import labels
from oomscope.wording.timelines import (
    MISSING_TITLE,
    category_name,
    missing_lines,
    moment,
    timeline_headline,
    timeline_lead,
    what_next,
)

_POINTS, _TEXT = 500, 400
_OWN_COLOURS = 8
"""Categories of another tool that have a colour of their own; the rest share one."""


@frozen
class Legend:
    """One band of the figure."""

    colour: str
    name: str


@frozen
class CategoryPage:
    """Everything that the template reads."""

    title: str
    headline: str
    lead: list[str]
    figure: Markup
    legend: tuple[Legend, ...]
    table: Table
    missing_title: str
    missing: tuple[str, ...]
    next: str
    version: str


def category_page(found: TimelineFindings, title: str | None = None) -> str:
    """The whole page as HTML text."""
    sheet = StyleSheet()
    colours = _colours(found)
    page = CategoryPage(
        title=title or timeline_headline(found),
        headline=timeline_headline(found),
        lead=timeline_lead(found),
        figure=_figure(found, colours, sheet),
        legend=tuple(
            Legend(f"k-{colours[course.category].variable}", category_name(found, course.category))
            for course in found.courses
            if course.highest
        ),
        table=table(found),
        missing_title=MISSING_TITLE,
        missing=missing_lines(),
        next=what_next(),
        version=__version__,
    )
    environment = page_environment(_TEXT)
    return environment.get_template("categories.html").render(
        **framed(environment, sheet, ("base", "tables", "start_diff"), {}), page=page, labels=labels
    )


def _colours(found: TimelineFindings) -> dict[str, palette.Colour]:
    """A colour for each category: the report's for those it knows."""
    if found.timeline.source != MOSAIC:
        return {**palette.CATEGORY_COLOURS, "autograd_detail": palette.CATEGORY_COLOURS["buffer"]}
    own = palette.SITE_COLOURS[:_OWN_COLOURS]
    return {
        course.category: own[at] if at < len(own) else palette.OTHER_SITES for at, course in enumerate(found.courses)
    }


def _figure(found: TimelineFindings, colours: dict[str, palette.Colour], sheet: StyleSheet) -> Markup:
    timeline, points = found.timeline, thinned(found.timeline, _POINTS)
    timed = timeline.time_us is not None
    x = (timeline.time_us[points] if timeline.time_us is not None else points).astype(np.float64)
    columns = {name: timeline.bytes[points, at] for at, name in enumerate(timeline.categories)}
    with settings("fig-categories"):
        figure, axes = canvas(WIDTH, HEIGHT)
        axes.set_position((LEFT / WIDTH, FOOT / HEIGHT, (RIGHT - LEFT) / WIDTH, (HEIGHT - FOOT - TOP) / HEIGHT))
        edge, bands = np.zeros(len(points), np.int64), []
        for course in found.courses:
            edge = edge + np.maximum(columns[course.category], 0)
            bands.append((edge, colours[course.category], bool(columns[course.category].any())))
        # Painted from the top down, each band needs only its upper edge.
        for top, colour, is_there in reversed(bands):
            if is_there:
                axes.fill_between(*staircase(x, top), 0, color=colour.light, linewidth=0)
        axes.set_xlim(x[0], x[-1] if x[-1] > x[0] else x[0] + 1)
        highest = max(found.peak, 1)
        axes.set_ylim(0, highest * 1.06)
        bytes_axis(axes.yaxis, highest, 6)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: format_duration(value) if timed else f"{round(value):,}")
        )
        axes.set_xlabel("time from the first point" if timed else "point", color=palette.QUIET.light, labelpad=3)
        description = f"Stacked by category; the highest point is {moment(found, found.peak_at)}."
        return inline_svg(figure, "fig-categories", "Memory in use by category over time", description, sheet)
