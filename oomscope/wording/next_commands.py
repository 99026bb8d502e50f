"""Which commands would tell more; ``SNAPSHOT`` stands for the file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import Location
from oomscope.analysis.whatif.records import RECORDED, WhatIf
from oomscope.model import Note
from oomscope.units import format_limit
from oomscope.wording.clean import clean

_PLAIN_FILE = re.compile(r"[\w.+-]+\Z")
"""Other names would need quotes that differ from shell to shell."""
_SETTING = re.compile(r"[\w.:,]+\Z")
_RUN = "oomscope run PROGRAM"


def next_commands(findings: Findings) -> list[str]:
    """What to run after a report."""
    device = findings.main
    found = [] if device is None else list(dict.fromkeys(_about(findings, device)))
    if findings.snapshot.context is None:
        found.append(_RUN)
    return found or [_RUN if device is not None and device.oom is not None else "oomscope demo"]


def next_after_whatif(answer: WhatIf) -> list[str]:
    """What to run after replays: the changed program, once an edit is shown to help."""
    found = ["oomscope report SNAPSHOT"]
    if any(row.oom is False and _changed(row.notes) for row in answer.rows):
        return [_RUN, *found]
    if answer.self_check.exact and not _has(answer.notes, "whatif.grows"):
        recorded = answer.row(RECORDED)
        if recorded is not None and recorded.least_memory is not None:
            found.append(f"oomscope whatif SNAPSHOT --limit {_size(recorded.least_memory)}")
        found.append("oomscope whatif SNAPSHOT --least-memory all")
    return found


def _about(findings: Findings, device: DeviceFindings) -> Iterator[str]:
    replays = "oomscope whatif SNAPSHOT"
    if device.history.entries < 2:
        return
    if not any(answer.device == device.device for answer in findings.whatif):
        yield replays
    oom = device.oom
    if oom is None:
        yield f"{replays} --least-memory all"
        return
    if oom.verdict.cause == "capacity":
        yield f"{replays} --remedies"
    only_delays = oom.verdict.cause in ("growth", "retained")
    for advice in oom.verdict.advice:
        slug = advice.slug.partition(".")[0]
        if slug == "allocator_setting" and _SETTING.match(str(advice.values.get("setting", ""))):
            yield f"{replays} --setting {advice.values['setting']}"
        elif slug == "raise_cap" and not only_delays:
            yield f"{replays} --limit {_size(advice.values['least'])}"
        elif slug == "smaller_batch":
            yield f"{replays} --scale activations={1 / advice.values['divisor']:g}"
        elif slug in ("bound_what_is_kept", "detach_what_is_kept") and (place := _place(_kept(advice.at, device))):
            yield f"{replays} {_as_if_not_kept(device)} {place}"
    if oom.limit.source == "bracket":
        yield f"{replays} --limit {_size(oom.limit.high)}"


def _kept(at: Location | None, device: DeviceFindings) -> Location | None:
    """The line whose tensors are kept: that of the advice, else the one that grows most."""
    return at or next((growth.site for growth in device.growth), None)


def _as_if_not_kept(device: DeviceFindings) -> str:
    """The option that tries the program without it: what grows after the last step is freed at no step's end."""
    since = next((growth.since_entry for growth in device.growth), None)
    last = device.steps.boundaries[-1] if device.steps.count > 1 else None
    return "--without" if last is None or (since is not None and since >= last) else "--free-each-step"


def _place(location: Location | None) -> str | None:
    if location is None:
        return None
    name = location.file.replace("\\", "/").rpartition("/")[2]
    return shlex.quote(f"{clean(name, 80)}:{location.line}") if _PLAIN_FILE.match(name) else None


def _has(notes: Sequence[Note], code: str) -> bool:
    return any(note.code == code for note in notes)


def _changed(notes: Sequence[Note]) -> bool:
    """Whether a row is of an edited program, and the edit found something to change."""
    return _has(notes, "whatif.estimate") and any(one.values.get("count") for one in notes)


def _size(count: int) -> str:
    """As `--limit` takes it: ``15.55GiB``."""
    return format_limit(count).replace(" ", "").replace(",", "")
