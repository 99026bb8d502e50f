"""The formats of a report. Each renderer loads only when it is asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomscope.analysis.findings import Findings
    from oomscope.rendering.common.sources import Sources

FORMATS = ("html", "md", "json", "text")
_OF_SUFFIX = {".md": "md", ".markdown": "md", ".json": "json", ".txt": "text"}


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that a file of this name has; HTML unless the name says otherwise."""
    return _OF_SUFFIX.get(Path(path).suffix.lower(), "html")


def render(findings: Findings, form: str, title: str | None = None, sources: Sources | None = None) -> str:
    """`findings` in one of `FORMATS`; `sources` looks lines of source up, None: in the dump alone."""
    if form == "html":
        from oomscope.rendering.html.page import render_html

        return render_html(findings, title=title, sources=sources)
    if form == "md":
        from oomscope.rendering.markdown import render_markdown

        return render_markdown(findings, title=title, sources=sources)
    if form == "json":
        from oomscope.rendering.json_report import render_json

        return render_json(findings)
    from oomscope.rendering.text.terminal import render_text

    return render_text(findings, title=title, sources=sources)
