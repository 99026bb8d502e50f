"""That only a part of a recording is shown, and which."""

from __future__ import annotations

from oomscope.analysis.findings import Findings
from oomscope.model import WindowPart
from oomscope.units import format_count


def shown_part(findings: Findings) -> str | None:
    """``Only entries 2,826 to 2,973 of 0 to 2,973 are shown …``; None where the whole recording is."""
    part = None if findings.main is None else findings.main.part
    if part is None:
        return None
    several = f" of device {part.device}" if len(findings.snapshot.devices) > 1 else ""
    return f"Only {_entries(part)}{several} are shown; all figures are those of this part of the recording."


def brief_part(findings: Findings) -> str | None:
    """The same in a few words: ``entries 2,826 to 2,973 of 0 to 2,973 only``."""
    part = None if findings.main is None else findings.main.part
    return None if part is None else f"{_entries(part)} only"


def _entries(part: WindowPart) -> str:
    if part.last < part.first:
        return f"0 of {format_count(part.entries)} entries"
    ends = f"{format_count(part.first)} to {format_count(part.last)}"
    return f"entries {ends} of 0 to {format_count(part.entries - 1)}"
