"""A ticket's attachment: the report in every format, with the snapshot, in one zip file."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomscope.analysis import Findings

# A fixed time, so that the same snapshot gives the same file; zip knows none before 1980.
_TIME = (1980, 1, 1, 0, 0, 0)


def bundle(findings: Findings, title: str | None = None) -> bytes:
    """A zip file with ``report.html``, ``report.md``, ``report.json`` and ``snapshot.pickle``, which memory_viz opens.

    Of redacted findings, the snapshot is the redacted one as well.
    """
    from oomscope.rendering import memory_viz, render_html
    from oomscope.rendering.json_report import render_json
    from oomscope.rendering.markdown import render_markdown

    members = {
        "report.html": render_html(findings, title=title).encode("utf-8", "backslashreplace"),
        "report.md": render_markdown(findings, title=title).encode("utf-8", "backslashreplace"),
        "report.json": render_json(findings).encode(),
        "snapshot.pickle": memory_viz.to_pickle(findings.snapshot),
    }
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)
    return sink.getvalue()
