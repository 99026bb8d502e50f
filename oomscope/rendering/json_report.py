"""The report as JSON, for programs: the names and units of `report.schema.json`. An unknown is null, never 0."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from oomscope import __version__
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import CATEGORIES, PHASES, SiteUse
from oomscope.analysis.whatif.records import WhatIf

SCHEMA_VERSION = 1
SCHEMA = Path(__file__).with_name("report.schema.json")
MAX_SITES = 100


def render_json(findings: Findings) -> str:
    """The findings as one JSON document with a newline at its end."""
    # Escapes of everything beyond ASCII keep lone surrogates and bidirectional marks of foreign names harmless.
    return json.dumps(as_document(findings), indent=1, allow_nan=False) + "\n"


def as_document(findings: Findings) -> dict[str, Any]:
    """The findings as plain containers."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "oomscope", "version": __version__},
        "snapshot": _snapshot(findings),
        "at": plain(findings.at),
        "devices": [_device(device) for device in findings.devices],
        "whatif": [
            {"device": answer.device, **plain(row, "notes"), "note": row.note}
            for answer in findings.whatif
            for row in answer.rows
        ],
        "whatif_checks": [_check(answer) for answer in findings.whatif],
    }


def plain(value: Any, *omit: str) -> Any:
    """Records as dicts, tuples as lists, numpy's numbers as Python's; a number that is none (NaN) is unknown."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.name not in omit}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _snapshot(findings: Findings) -> dict[str, Any]:
    snapshot = findings.snapshot
    recording = plain(findings.recording)
    recording["notes"] = list(dict.fromkeys([*recording["notes"], *snapshot.notes]))
    return {
        "torch_version": snapshot.recorded.torch,
        "layout": snapshot.schema,
        "entries": snapshot.entries,
        "recording": recording,
        "settings": plain(snapshot.settings),
        "context": plain(snapshot.context),
    }


def _device(device: DeviceFindings) -> dict[str, Any]:
    return {
        "device": device.device,
        "name": device.name,
        "at_entry": plain(device.at_entry),
        "usage": plain(device.usage),
        "at": plain(device.at),
        "peak": plain(device.peak),
        "reconciliation": plain(device.reconciliation),
        "fragmentation": plain(device.fragmentation),
        "categories": _shares(device.categories, CATEGORIES),
        "categories_source": device.categories_source,
        "phases": _shares(device.phases, PHASES),
        "sites": _sites(device),
        "names": plain(device.names),
        "holders": plain(device.holders),
        "pins": plain(device.pins),
        "growth": plain(device.growth),
        "steps": plain(device.steps),
        "bill": _bill(device),
        "device_total": plain(device.device_total),
        "outside": plain(device.outside),
        "oom": plain(device.oom),
        "ooms": plain(device.ooms),
    }


def _shares(shares: Mapping[str, int], names: tuple[str, ...]) -> dict[str, Any] | None:
    """Every name of `names`, and what else there is; null where nothing was attributed."""
    if not shares:
        return None
    return {**dict.fromkeys(names, 0), **{name: plain(count) for name, count in shares.items()}}


def _sites(device: DeviceFindings) -> list[dict[str, Any]]:
    """At most `MAX_SITES` rows that sum to what is allocated at the instant."""
    sites = device.sites
    shown = sites if len(sites) <= MAX_SITES - 1 else sites[: MAX_SITES - 2]
    rows = [_site_row(site) for site in shown]
    if rest := sites[len(shown) :]:
        rows.append(_row("all others", sum(site.bytes for site in rest), sum(site.blocks for site in rest)))
    if missing := device.at.allocated - sum(site.bytes for site in sites):
        rows.append(_row("not accounted for", missing, 0))
    return rows


def _row(label: str, count: int, blocks: int) -> dict[str, Any]:
    return _site_row(SiteUse(site=None, caller=None, label=label, bytes=count, blocks=blocks))


def _site_row(site: SiteUse) -> dict[str, Any]:
    row: dict[str, Any] = plain(site, "stacks")
    if row["site"] is None:
        row["site"] = {"file": None, "line": None, "function": None}
    return row


def _bill(device: DeviceFindings) -> dict[str, Any] | None:
    bill = device.bill
    if bill is None:
        return None
    rows = [{"what": what, "expected": plain(expected), "actual": plain(there)} for what, expected, there in bill.rows]
    return {**plain(bill, "rows"), "rows": rows}


def _check(answer: WhatIf) -> dict[str, Any]:
    return {"device": answer.device, **plain(answer.self_check)}
