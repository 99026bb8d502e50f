"""The text of a line of code, where the dump carries it."""

from __future__ import annotations

from collections.abc import Iterable

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location
from oomscope.model import Snapshot
from oomscope.wording.clean import clean

_LONGEST = 160


def source_of(snapshot: Snapshot, location: Location | None) -> str | None:
    """The line of source at `location`, without its indentation; None where the dump does not carry it."""
    if location is None:
        return None
    for source in snapshot.recorded.sources:
        offset = location.line - source.first
        if source.filename == location.file and 0 <= offset < len(source.text):
            return clean(source.text[offset].strip(), _LONGEST) or None
    return None


def source_block(snapshot: Snapshot, location: Location) -> list[str]:
    """The line at `location` between its neighbours, each behind its number, the line itself behind an arrow."""
    for source in snapshot.recorded.sources:
        if source.filename == location.file and source.first <= location.line < source.first + len(source.text):
            return [
                f"{'→' if number == location.line else ' '} {number:>5}  {clean(text.rstrip(), _LONGEST)}"
                for number, text in enumerate(source.text, source.first)
            ]
    return []


def telling_line(snapshot: Snapshot, device: DeviceFindings) -> tuple[Location, str] | None:
    """The line that the verdict is about, with its text: where the memory is kept, else what to change, else who asked.

    None where the dump carries the text of none of them.
    """
    for location in _candidates(device):
        text = source_of(snapshot, location)
        if location is not None and text is not None:
            return location, text
    return None


def _candidates(device: DeviceFindings) -> Iterable[Location | None]:
    if device.oom is None:
        return
    verdict = device.oom.verdict
    yield from (suspect.at for suspect in verdict.suspects[:1])
    yield from (advice.at for advice in verdict.advice[:1] if not advice.refuted)
    yield device.oom.caller or device.oom.site
