"""The line of code that the first screen shows: who keeps the memory, or who asked for too much."""

from __future__ import annotations

from dataclasses import dataclass

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Oom
from oomscope.rendering.common.sources import Excerpt, Sources
from oomscope.wording import page as words
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten


@dataclass(frozen=True, slots=True)
class Culprit:
    """A line of code.

    Attributes:
        file: its file as people say it.
        line, function: as the frame has them.
        full: the whole path with the line.
        note: what the line does.
        excerpt: the line with those around it; None where no source is known.
    """

    file: str
    line: int
    function: str
    full: str
    note: str
    excerpt: Excerpt | None


def culprit(device: DeviceFindings, shorten: Shorten, sources: Sources) -> Culprit | None:
    """The line to look at; None where no stack names one."""
    found = _of_failure(device, device.oom) if device.oom is not None else _of_largest(device)
    if found is None:
        return None
    where, note = found
    return Culprit(
        shorten(where.file),
        where.line,
        clean(where.function, 80),
        f"{clean(where.file, 400)}:{where.line}",
        note,
        sources.around(where.file, where.line),
    )


def _of_failure(device: DeviceFindings, oom: Oom) -> tuple[Location, str] | None:
    verdict = oom.verdict
    if verdict.cause in ("growth", "retained"):
        named = {note.values.get("holder") for note in verdict.headline}
        per_pass = next((note.values["per_pass"] for note in verdict.headline if note.values.get("per_pass")), None)
        for growth in device.growth if verdict.cause == "growth" else ():
            inside = _in_loop(device, growth)
            where = inside or growth.caller or growth.site
            if where is not None:
                return where, words.growth_note(growth, per_pass if inside is not None else None)
        for suspect in verdict.suspects:
            if suspect.at is not None and suspect.holder in named:
                return suspect.at, words.HELD_HERE
        for driver in verdict.drivers[:1]:
            if driver.site is not None:
                made = sum(use.bytes for use in device.sites if use.site == driver.site)
                return driver.site, words.made_note(made or driver.bytes)
    if verdict.cause == "fragmentation":
        for pin in device.pins:
            where = pin.caller or pin.site
            if where is not None:
                return where, words.pin_note(pin)
    asked = verdict.asked
    asked_at = (asked.caller or asked.site or asked.backward_call) if asked is not None else None
    where = asked_at or oom.caller or oom.site
    return None if where is None else (where, words.asked_note(oom))


def _in_loop(device: DeviceFindings, growth: Growth) -> Location | None:
    """The line of the loop's own function that led to what grows: one call in its body, however deep the site is."""
    loop = growth.loop
    if loop is None:
        return None
    stacks = device.study.snapshot.stacks
    for use in device.sites:
        if (use.site, use.caller, use.label) == (growth.site, growth.caller, growth.label):
            for stack, _, _ in use.stacks:
                for frame in stacks[stack]:
                    if (frame.filename, frame.name) == (loop.file, loop.function):
                        return Location(frame.filename, frame.line, frame.name)
    return None


def _of_largest(device: DeviceFindings) -> tuple[Location, str] | None:
    """Without a failure: the line that made most of what was live."""
    for use in device.sites:
        where = use.caller or use.site
        if where is not None:
            return where, words.made_note(use.bytes)
    return None
