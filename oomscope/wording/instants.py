"""Moments of the recording in words."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import At
from oomscope.units import format_count, format_duration

_MOMENTS = {"oom": "the OOM", "peak": "the peak"}


def moment_words(findings: Findings) -> str:
    """What the instant of attribution is called, where times are counted from it: ``the OOM``."""
    return _MOMENTS.get(findings.at.kind, "the instant shown")


def instant(at: At, entries: int) -> str:
    """Which instant the attribution is about: ``at the OOM (the last entry, 2,973)``."""
    if at.kind == "end" or not entries:
        return "at the end of the snapshot"
    # Entries are counted from 0, as --at and the JSON report count them: "2,973 of 2,974" would puzzle.
    last = entries - 1
    what = f"entry {format_count(at.entry)}"
    if at.entry == last:
        what = f"the last entry, {format_count(at.entry)}"
    rest = "" if at.entry == last else f" of 0 to {format_count(last)}"
    return f"at {_MOMENTS[at.kind]} ({what}{rest})" if at.kind in _MOMENTS else f"at {what}{rest}"


def elsewhere(at: At, device: DeviceFindings) -> str | None:
    """Where the verdict is about another instant than the figures: a sentence that says so."""
    if device.oom is None or device.oom.entry == device.at_entry:
        return None
    where = instant(at, device.history.recorded)
    verdict = f"the OOM at entry {format_count(device.oom.entry)}"
    return f"The verdict and its numbers describe {verdict}; everything else is shown {where}."


def before_oom(device: DeviceFindings, entry: int) -> str:
    """When `entry` happened: ``2.31 s before the OOM``; by its number where there is no OOM or no time."""
    trace, oom = device.history.trace, device.oom
    if oom is None or oom.time_us is None or not trace.timed or not 0 <= entry < len(trace):
        return "before the recording" if entry < 0 else f"entry {format_count(entry)}"
    distance = oom.time_us - int(trace.time_us[entry])
    return f"{format_duration(distance)} {'before' if distance >= 0 else 'after'} the OOM"
