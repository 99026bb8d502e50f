"""Moments of the recording in words."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import At
from oomscope.analysis.verdict.failed_tries import given_up_failures
from oomscope.model import WindowPart
from oomscope.units import format_count, format_duration, plural

_MOMENTS = {"oom": "the OOM", "peak": "the peak"}


def moment_words(findings: Findings) -> str:
    """What the instant of attribution is called, where times are counted from it: ``the OOM``."""
    return _MOMENTS.get(findings.at.kind, "the instant shown")


def instant_of(at: At, device: DeviceFindings) -> str:
    """Which instant of a device the attribution is about: ``at the last of 12 OOMs (entry 2,973)``."""
    failed = {*given_up_failures(device.history).tolist(), at.entry} if at.kind == "oom" else ()
    return instant(at, device.history.recorded, device.part, sorted(failed))


def instant(at: At, entries: int, part: WindowPart | None = None, failed: Sequence[int] = ()) -> str:
    """Which instant the attribution is about: ``at the OOM (the last entry, 2,973)``.

    Args:
        at: the instant.
        entries: how many entries there are.
        part: which ones of the recording they are, whose numbers are said; None: all.
        failed: the entries of all OOMs, where it is one of them.
    """
    goes_on = part is not None and part.last < part.entries - 1
    if at.kind == "end" or not entries:
        return "at the last entry shown" if goes_on else "at the end of the snapshot"
    # Entries are counted from 0, as --at and the JSON report count them: "2,973 of 2,974" would puzzle.
    first = 0 if part is None else part.first
    last = entries - 1
    what = f"entry {format_count(at.entry + first)}"
    if at.entry == last and len(failed) < 2:
        what = f"the last entry{' shown' if goes_on else ''}, {format_count(at.entry + first)}"
    rest = "" if at.entry == last else f" of {format_count(first)} to {format_count(last + first)}"
    moment = _one_of(at.entry, failed) or _MOMENTS.get(at.kind)
    return f"at {moment} ({what}{rest})" if moment else f"at {what}{rest}"


def failures_text(device: DeviceFindings) -> str:
    """How many requests failed, where not all of them are told: ``the last 8 of 96 failed requests``."""
    told = len(device.ooms)
    if told == device.failures:
        return plural(told, "failed request")
    return f"the last {told} of {format_count(device.failures)} failed requests"


def _one_of(entry: int, failed: Sequence[int]) -> str | None:
    """Which of several OOMs one is: ``the last of 12 OOMs``; None where it is the only one."""
    if len(failed) < 2 or entry not in failed:
        return None
    place = failed.index(entry)
    number = {0: "the first", len(failed) - 1: "the last"}.get(place, f"number {format_count(place + 1)}")
    return f"{number} of {format_count(len(failed))} OOMs"


def elsewhere(at: At, device: DeviceFindings) -> str | None:
    """Where the verdict is about another instant than the figures: a sentence that says so."""
    if device.oom is None or device.oom.entry == device.at_entry:
        return None
    where = instant_of(at, device)
    verdict = f"the OOM at entry {format_count(device.oom.entry + device.first_entry)}"
    return f"The verdict and its numbers describe {verdict}; everything else is shown {where}."


def before_oom(device: DeviceFindings, entry: int) -> str:
    """When `entry` happened: ``2.31 s before the OOM``; by its number where there is no OOM or no time."""
    trace, oom = device.history.trace, device.oom
    if oom is None or oom.time_us is None or not trace.timed or not 0 <= entry < len(trace):
        if entry < 0:
            return "before the recording" if not device.first_entry else "before the part shown"
        return f"entry {format_count(entry + device.first_entry)}"
    distance = oom.time_us - int(trace.time_us[entry])
    return f"{format_duration(distance)} {'before' if distance >= 0 else 'after'} the OOM"
