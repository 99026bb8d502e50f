"""Who or what holds the memory in use, in a few rows: objects where they are known, else what the memory is."""

from __future__ import annotations

from dataclasses import dataclass

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Driver, Suspect
from oomscope.units import plural
from oomscope.wording.clean import clean
from oomscope.wording.labels import CATEGORY_LABELS, DRIVER_LABELS, HOLDER_LABELS, label
from oomscope.wording.paths import Shorten
from oomscope.wording.places import file_line

SMALLEST = 0.01
"""Of the bytes in use; what holds less has no row of its own."""


@dataclass(frozen=True, slots=True)
class Share:
    """One row: bytes, and who holds them or what they are."""

    bytes: int
    text: str


def shares(device: DeviceFindings, shorten: Shorten, most: int) -> list[Share]:
    """At most `most` rows, largest first, that add up to what is allocated; the last is for all the rest."""
    allocated = device.at.allocated
    rows = [row for row in _rows(device, shorten) if row.bytes >= SMALLEST * max(allocated, 1)]
    rows.sort(key=lambda row: -row.bytes)
    shown = rows[: most - 1] if len(rows) > most else rows[:most]
    rest = allocated - sum(row.bytes for row in shown)
    if rest >= SMALLEST * max(allocated, 1):
        shown = [*shown[: most - 1]]
        shown.append(Share(allocated - sum(row.bytes for row in shown), "everything else"))
    return shown


def _rows(device: DeviceFindings, shorten: Shorten) -> list[Share]:
    oom = device.oom
    if oom is not None and oom.entry == device.at_entry:
        suspects = [Share(one.retained, _suspect_text(one)) for one in oom.verdict.suspects]
        if suspects and sum(row.bytes for row in suspects) <= device.at.allocated:
            return suspects
        drivers = [Share(one.bytes, _driver_text(one, shorten)) for one in oom.verdict.drivers]
        if drivers and sum(row.bytes for row in drivers) <= device.at.allocated:
            return drivers
    return [Share(count, label(slug, CATEGORY_LABELS)) for slug, count in device.categories.items()]


def _suspect_text(suspect: Suspect) -> str:
    kind = label(suspect.kind, HOLDER_LABELS)
    parts = [kind, plural(suspect.tensors, "tensor")]
    if suspect.passes:
        parts.append(plural(suspect.passes, "pass", "passes"))
    return f"{clean(suspect.holder, 120)} ({', '.join(parts)})"


def _driver_text(driver: Driver, shorten: Shorten) -> str:
    name = label(driver.slug, DRIVER_LABELS)
    return f"{name}, mostly {file_line(driver.site, shorten)}" if driver.site else name
