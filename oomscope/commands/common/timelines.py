"""A report of a timeline by category, where a file holds that and no snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oomscope.errors import RequestError

if TYPE_CHECKING:
    from oomscope.reading.category_timelines import TimelineFoundError


def timeline_report(found: TimelineFoundError, form: str, title: str | None, asked: Sequence[str]) -> str:
    """The report in the format `form`.

    Args:
        found: with the timeline.
        form: one of `oomscope.rendering.formats.FORMATS`.
        title: of the report; None: its headline.
        asked: options that only a snapshot can serve.

    Raises:
        RequestError: there are such options, or the timeline is empty.
    """
    from oomscope.analysis.timelines import timeline_findings

    if asked:
        raise RequestError(f"{found} Leave out {' and '.join(asked)}.")
    findings = timeline_findings(found.timeline)
    if findings is None:
        raise RequestError(f"{found} This one is empty.")
    if form == "html":
        from oomscope.rendering.html.category_page import category_page

        return category_page(findings, title)
    from oomscope.rendering import category_timeline as plain

    if form == "md":
        return plain.to_markdown(findings, title)
    return plain.to_json(findings) if form == "json" else plain.to_text(findings)
