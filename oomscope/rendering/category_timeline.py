"""A timeline by category as text, Markdown and JSON; the page is in html/category_page.py."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from oomscope.analysis.timelines import TimelineFindings, thinned
from oomscope.rendering.common.tables import Table, percent_text
from oomscope.rendering.json_plain import dumped, plain
from oomscope.rendering.markdown import escaped, prose, table_text
from oomscope.rendering.text.sparkline import sparkline
from oomscope.rendering.text.terminal import WIDTH, section
from oomscope.rendering.text.terminal import plain as printed
from oomscope.units import format_bytes
from oomscope.wording.timelines import (
    HEADINGS,
    MISSING_TITLE,
    NEXT,
    TITLE,
    category_name,
    missing_lines,
    timeline_headline,
    timeline_lead,
    what_next,
)

SCHEMA_VERSION = 1
_POINTS = 400
_ROWS = 40


def to_json(found: TimelineFindings) -> str:
    """The document that ``oomscope report --format json`` prints of a timeline."""
    return dumped(as_document(found)) + "\n"


def as_document(found: TimelineFindings) -> dict[str, Any]:
    """The timeline as plain containers; its curve has the highest point of each stretch."""
    timeline = found.timeline
    times, points = timeline.time_us, thinned(timeline, _POINTS)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "category_timeline",
        "source": timeline.source,
        "headline": timeline_headline(found),
        "points": len(timeline),
        "duration_us": None if times is None else int(times[-1]),
        "off_by": timeline.off_by,
        "peak": {
            "bytes": found.peak,
            "point": found.peak_at,
            "time_us": None if times is None else int(times[found.peak_at]),
        },
        "lowest": found.lowest,
        "categories": [plain(course) for course in found.courses],
        "curve": {
            "points": plain(points.tolist()),
            "time_us": None if times is None else plain(times[points].tolist()),
            "bytes": {
                name: plain(column[points].tolist())
                for name, column in zip(timeline.categories, timeline.bytes.T, strict=True)
                if column.any()
            },
        },
        "missing": list(missing_lines()),
        "notes": timeline_lead(found),
        "next": [NEXT],
    }


def table(found: TimelineFindings) -> Table:
    """A row a category."""
    shown = [course for course in found.courses if course.highest or course.first or course.last]
    rows = tuple(
        (
            category_name(found, course.category),
            format_bytes(course.at_peak),
            percent_text(course.at_peak, found.peak),
            format_bytes(course.highest),
            format_bytes(course.first),
            format_bytes(course.last),
        )
        for course in shown[:_ROWS]
    )
    return Table(TITLE, HEADINGS, rows, frozenset(range(1, len(HEADINGS))), max(0, len(shown) - _ROWS))


def shown(found: TimelineFindings) -> RenderableType:
    """The timeline for a rich console."""
    parts: list[RenderableType] = [Text(timeline_headline(found), style="bold"), Text()]
    parts += [*section(table(found))]
    parts += [Text.assemble("in use  ", (sparkline(found.timeline.total, found.peak, 52), "cyan")), Text()]
    parts += [Text(line) for line in timeline_lead(found)]
    parts += [Text(), Text(f"{MISSING_TITLE}: {'; '.join(missing_lines())}."), Text(what_next())]
    return Group(*parts)


def to_text(found: TimelineFindings, width: int = WIDTH) -> str:
    """The timeline as plain text."""
    return printed(shown(found), width)


def to_markdown(found: TimelineFindings, title: str | None = None) -> str:
    """The timeline as GitHub-flavoured Markdown."""
    parts = [f"### {escaped(title or TITLE)}", f"**{escaped(timeline_headline(found))}**", table_text(table(found))]
    parts += [prose(" ".join(timeline_lead(found)))]
    parts += ["\n".join([f"{MISSING_TITLE}:", "", *(f"- {line}" for line in missing_lines())]), prose(what_next())]
    return "\n\n".join(parts) + "\n"
