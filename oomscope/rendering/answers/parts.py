"""What the answers share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oomscope.analysis.findings import Findings
from oomscope.analysis.records import Location
from oomscope.rendering.json_plain import plain
from oomscope.rendering.json_report import SCHEMA_VERSION
from oomscope.wording.clean import clean


def document(found: dict[str, Any], commands: Iterable[str]) -> dict[str, Any]:
    """`found` with its version in front and the commands that would tell more behind it."""
    return {"schema_version": SCHEMA_VERSION, **found, "next": list(commands)}


def about(findings: Findings) -> dict[str, Any]:
    """The snapshot: its release of torch, its layout, its size, and how well the run was recorded."""
    snapshot, recording = findings.snapshot, findings.recording
    return {
        "torch_version": snapshot.recorded.torch,
        "layout": snapshot.schema,
        "entries": snapshot.entries,
        "window": plain(snapshot.window) or None,
        "recording": {
            "history": recording.history,
            "stacks": recording.stacks,
            "unattributed_live_bytes": recording.unattributed_live_bytes,
            "by_oomscope": snapshot.context is not None,
            "cut": recording.cut,
        },
    }


def location(where: Location | None) -> str | None:
    """``train.py:31 forward``, with the folders that the snapshot names; None where there is none."""
    return None if where is None else f"{clean(where.file)}:{where.line} {clean(where.function, 80)}"
