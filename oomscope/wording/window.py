"""That only a part of a recording is shown, and which."""

from __future__ import annotations

from oomscope.analysis.findings import Findings
from oomscope.model import WindowPart
from oomscope.units import format_count


def shown_part(findings: Findings) -> str | None:
    """``Only entries 2,826 to 2,973 of 2,974 are shown, …``; None where the whole recording is."""
    snapshot, device = findings.snapshot, findings.main
    part = None if device is None else snapshot.window_of(device.device)
    if part is None:
        return None
    several = f" of device {part.device}" if len(snapshot.devices) > 1 else ""
    return f"Only {_entries(part)}{several} are shown{_counted(part)}."


def brief_part(findings: Findings) -> str | None:
    """The same in a few words: ``entries 2,826 to 2,973 of 2,974 only``."""
    part = None if findings.main is None else findings.snapshot.window_of(findings.main.device)
    return None if part is None else f"{_entries(part)} only"


def _entries(part: WindowPart) -> str:
    if part.last < part.first:
        return f"0 of {format_count(part.entries)} entries"
    return f"entries {format_count(part.first)} to {format_count(part.last)} of {format_count(part.entries)}"


def _counted(part: WindowPart) -> str:
    """How to get from a number on the page to that in the recording."""
    if part.first == 0 or part.last < part.first:
        return ""
    return f", counted from 0 here: entry 0 is entry {format_count(part.first)} of the recording"
