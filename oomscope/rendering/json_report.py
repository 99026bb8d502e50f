"""The report as JSON, for programs: the names and units of `report.schema.json`. An unknown is null, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from oomscope.analysis.attribution.by_site import ALL_OTHERS
from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.analysis.whatif.records import SelfCheck, WhatIf, WhatIfRow
from oomscope.model import Note
from oomscope.rendering.common.numbering import as_recorded
from oomscope.rendering.json_plain import dumped, plain
from oomscope.rendering.json_verdict import oom_document, step_at
from oomscope.version import __version__
from oomscope.wording import say
from oomscope.wording.labels import SITE_LABELS, label
from oomscope.wording.next_commands import next_commands
from oomscope.wording.whatif_table import notes_text

SCHEMA_VERSION = 2
SCHEMA = Path(__file__).with_name("report.schema.json")
MAX_SITES = 100
MAX_NAMES = 500
"""The largest tensors; a model has thousands of names that nobody looks up in a report."""
_ON_DEVICES = frozenset({"tensors", "holders", "steps"})


def render_json(findings: Findings) -> str:
    """The findings as one JSON document with a newline at its end."""
    return dumped(as_document(findings)) + "\n"


def as_document(findings: Findings) -> dict[str, Any]:
    """The findings as plain containers."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "oomscope", "version": __version__},
        "snapshot": _snapshot(findings),
        "at": at_document(findings),
        "devices": [as_recorded(_device(device), device.first_entry) for device in findings.devices],
        "pinned": _pinned(findings),
        "refused": _refused(findings),
        "whatif": [
            {"device": answer.device, **as_recorded(row_as_dict(row), first_entry(findings, answer.device))}
            for answer in findings.whatif
            for row in answer.rows
        ],
        "whatif_checks": [_check(one, first_entry(findings, one.device)) for one in findings.whatif],
        "next": next_commands(findings),
    }


def first_entry(findings: Findings, device: int) -> int:
    """The number of the first entry of `device` in the whole recording: not 0 where only a window is shown."""
    part = findings.snapshot.window_of(device)
    return 0 if part is None else part.first


def at_document(findings: Findings) -> dict[str, Any]:
    """The instant of attribution as plain containers."""
    found: dict[str, Any] = as_recorded(plain(findings.at), first_entry(findings, findings.at.device))
    return found


def _pinned(findings: Findings) -> dict[str, Any] | None:
    """Pinned host memory; null where the snapshot tells nothing of it."""
    found = findings.pinned
    if found is None:
        return None
    figures = {"held": found.held, "in_use": found.in_use, "most_held": found.most_held}
    sites = [{name: value for name, value in _site_row(site).items() if name != "category"} for site in found.sites]
    return {**plain(found, "study", "sites"), **figures, "sites": sites}


def _refused(findings: Findings) -> dict[str, Any] | None:
    """A failure that the trace does not tell of, as `oomscope explain` reads its message; null where there is none."""
    found = findings.refused
    if found is None:
        return None
    request = found.message.figure("requested")
    return {
        "kind": found.message.kind,
        "pinned": found.pinned,
        "device_free": found.device_free,
        "requested": None if request is None else request.value,
        "proves": [say(one) for one in found.message.proves],
    }


def row_as_dict(row: WhatIfRow) -> dict[str, Any]:
    """One setting's row as plain containers; unknown values are None."""
    return {**plain(row, "notes"), "note": notes_text(row), "note_codes": plain(row.notes)}


def with_notes(record: dict[str, Any], notes: Iterable[Note]) -> dict[str, Any]:
    """`record` with the sentences of `notes`, and the code and values of each beside them."""
    notes = tuple(notes)
    return {**record, "notes": [say(note) for note in notes], "note_codes": plain(notes)}


def check_as_dict(check: SelfCheck) -> dict[str, Any]:
    """A self-check as plain containers, its reason in words and as a code."""
    reason = None if check.reason is None else say(check.reason)
    return {**plain(check), "reason": reason, "reason_code": plain(check.reason)}


def _snapshot(findings: Findings) -> dict[str, Any]:
    snapshot = findings.snapshot
    recording = with_notes(plain(findings.recording, "notes"), (*findings.recording.notes, *snapshot.notes))
    return {
        "torch_version": snapshot.recorded.torch,
        "layout": snapshot.schema,
        "entries": snapshot.entries,
        "window": plain(snapshot.window) or None,
        "recording": recording,
        "settings": plain(snapshot.settings),
        "context": None if snapshot.context is None else plain(_context(snapshot.context)),
    }


def _device(device: DeviceFindings) -> dict[str, Any]:
    return {
        "device": device.device,
        "name": device.name,
        "at_entry": plain(device.at_entry),
        "usage": plain(device.usage),
        "at": plain(device.at),
        "peak": _peak(device),
        "reconciliation": with_notes(plain(device.reconciliation, "notes"), device.reconciliation.notes),
        "fragmentation": plain(device.fragmentation),
        "categories": _shares(device.categories, CATEGORIES),
        "categories_source": device.categories_source,
        "phases": _shares(device.phases, PHASES),
        "sites": _sites(device),
        "names": plain(device.names[:MAX_NAMES]),
        "names_left_out": _left_out(device),
        "holders": plain(device.holders),
        "pins": [_labelled(pin) for pin in device.pins],
        "growth": [
            {**_labelled(growth), "since_step": step_at(device.steps, growth.since_entry)} for growth in device.growth
        ],
        "named": plain(device.named),
        "pools": plain(device.pools),
        "steps": plain(device.steps),
        "bill": _bill(device),
        "device_total": plain(device.device_total),
        "outside": plain(device.outside),
        "oom": None if device.oom is None else oom_document(device.oom, device.steps),
        "ooms": [oom_document(oom, device.steps) for oom in device.ooms],
    }


def _context(context: Mapping[str, Any]) -> dict[str, Any]:
    """The dump's own key, without what the devices of the report have."""
    return {key: value for key, value in context.items() if key not in _ON_DEVICES}


def _peak(device: DeviceFindings) -> dict[str, Any] | None:
    if device.peak is None:
        return None
    return {**plain(device.peak), "step": step_at(device.steps, device.peak.allocated_entry)}


def _left_out(device: DeviceFindings) -> dict[str, int] | None:
    """The tensors beyond `MAX_NAMES`; None where there are none."""
    rest = device.names[MAX_NAMES:]
    return {"tensors": len(rest), "bytes": sum(tensor.bytes for tensor in rest)} if rest else None


def _shares(shares: Mapping[str, int], names: tuple[str, ...]) -> dict[str, Any] | None:
    """Every name of `names`, and what else there is; null where nothing was attributed."""
    if not shares:
        return None
    return {**dict.fromkeys(names, 0), **{name: plain(count) for name, count in shares.items()}}


def _sites(device: DeviceFindings) -> list[dict[str, Any]]:
    """At most `MAX_SITES` rows that sum to what is allocated at the instant, the rows for all others among them."""
    sites = device.sites
    missing = device.at.allocated - sum(site.bytes for site in sites)
    most = MAX_SITES - bool(missing)
    shown = sites if len(sites) <= most else sites[: most - 1]
    rows = [_site_row(site) for site in shown]
    if rest := sites[len(shown) :]:
        rows.append(_row(ALL_OTHERS, sum(site.bytes for site in rest), sum(site.blocks for site in rest)))
    if missing:
        rows.append(_row("unaccounted", missing, 0))
    return rows


def _row(label: str, count: int, blocks: int) -> dict[str, Any]:
    return _site_row(SiteUse(site=None, caller=None, label=label, bytes=count, blocks=blocks))


def _labelled(item: SiteUse | Pin | Growth) -> dict[str, Any]:
    """`item` with the reason why it has no site in words, and as a code beside them."""
    words = None if item.label is None else label(item.label, SITE_LABELS)
    return {**plain(item), "label": words, "label_code": item.label}


def _site_row(site: SiteUse) -> dict[str, Any]:
    row = {name: value for name, value in _labelled(site).items() if name != "stacks"}
    if row["site"] is None:
        row["site"] = {"file": None, "line": None, "function": None}
    return row


def _bill(device: DeviceFindings) -> dict[str, Any] | None:
    bill = device.bill
    if bill is None:
        return None
    rows = [{"what": what, "expected": plain(expected), "actual": plain(there)} for what, expected, there in bill.rows]
    return {**plain(bill, "rows"), "rows": rows}


def _check(answer: WhatIf, first: int) -> dict[str, Any]:
    found, mismatch = check_as_dict(answer.self_check), answer.self_check.first_mismatch
    return {"device": answer.device, **found, "first_mismatch": None if mismatch is None else mismatch + first}
