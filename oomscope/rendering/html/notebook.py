"""How findings and snapshots show themselves in a notebook.

The report keeps to an iframe of its own: its styles and scripts do not touch the notebook's, and nothing in it may
reach the notebook, for a snapshot is a stranger's file.
"""

from __future__ import annotations

from html import escape

from oomscope.analysis.findings import Findings
from oomscope.history import device_kind
from oomscope.model import Snapshot
from oomscope.rendering.html.page import render_html
from oomscope.units import format_bytes, format_count

_HEIGHT = 900


def findings_html(findings: Findings) -> str:
    """The report of `findings` as an iframe."""
    page = escape(render_html(findings), quote=True)
    return (
        f'<iframe title="oomscope report" sandbox="allow-scripts" srcdoc="{page}" '
        f'style="width:100%;height:{_HEIGHT}px;border:0"></iframe>'
    )


def snapshot_html(snapshot: Snapshot) -> str:
    """What `snapshot` holds, a row a device."""
    kind = device_kind(snapshot)
    rows = "".join(
        f'<tr><th scope="row">{kind}:{device.index}</th>'
        f"<td>{format_count(len(device.trace))}</td><td>{format_count(len(device.layout.segments))}</td>"
        f"<td>{format_bytes(device.layout.reserved)}</td><td>{format_bytes(device.layout.allocated)}</td></tr>"
        for device in snapshot.devices
    )
    head = "".join(
        f'<th scope="col">{title}</th>' for title in ("Device", "Trace entries", "Segments", "Reserved", "Allocated")
    )
    caption = f"Memory snapshot, torch {escape(snapshot.schema)}; oomscope.analyze() explains it."
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
