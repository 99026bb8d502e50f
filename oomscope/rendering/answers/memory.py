"""Who holds the memory, which lines made it, and what is live at an instant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oomscope.analysis.attribution.records import NamedTensor, SiteUse
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.rendering.answers.parts import document, location
from oomscope.rendering.json_plain import plain
from oomscope.rendering.json_verdict import step_at
from oomscope.wording.clean import clean
from oomscope.wording.labels import SITE_LABELS, label
from oomscope.wording.next_commands import next_commands
from oomscope.wording.places import holder_name

_RECORD = "oomscope run PROGRAM"


def holders(findings: Findings) -> dict[str, Any]:
    """The Python objects that keep memory alive, and the largest tensors by name; null where none were recorded."""
    device = findings.main
    known = device is not None and bool(device.holders or device.names)
    found: dict[str, Any] = {
        **_where(findings, device),
        "known": known,
        "holders": [
            {
                "holder": clean(holder_name(one.holder)),
                "kind": one.kind,
                "retained": plain(one.retained),
                "reaches": plain(one.bytes),
                "tensors": plain(one.tensors),
            }
            for one in (device.holders if device is not None else ())
        ]
        or None,
        "categories": _largest(device.categories) if device is not None else None,
        "categories_source": None if device is None else device.categories_source,
        "tensors": None if device is None else _tensors(device.names) or None,
    }
    return document(found, next_commands(findings) if known else [_RECORD])


def sites(findings: Findings) -> dict[str, Any]:
    """The lines that made what is live, largest first; their bytes sum to what is allocated, or say what is missing."""
    device = findings.main
    rows = device.sites if device is not None else ()
    found = {
        **_where(findings, device),
        "sites": [_site(one) for one in rows],
        "unaccounted": None if device is None else plain(device.at.allocated) - sum(plain(one.bytes) for one in rows),
    }
    return document(found, next_commands(findings))


def at_instant(findings: Findings) -> dict[str, Any]:
    """What is live at an instant: totals, and bytes by phase, by category and by line."""
    device = findings.main
    found: dict[str, Any] = _where(findings, device)
    if device is not None:
        found |= {
            "totals": plain(device.at),
            "step": step_at(device.steps, device.at_entry),
            "phases": _largest(device.phases),
            "categories": _largest(device.categories),
            "fragmentation": plain(device.fragmentation, "by_pool"),
            "sites": [_site(one) for one in device.sites],
            "pins": [
                {
                    "site": location(one.site),
                    "stranded_bytes": plain(one.stranded_bytes),
                    "live_bytes": plain(one.live_bytes),
                    "blocks": plain(one.blocks),
                }
                for one in device.pins
            ],
        }
    return document(found, next_commands(findings))


def _where(findings: Findings, device: DeviceFindings | None) -> dict[str, Any]:
    return {
        "device": None if device is None else device.device,
        "at": plain(findings.at),
        "allocated": None if device is None else plain(device.at.allocated),
    }


def _site(one: SiteUse) -> dict[str, Any]:
    caller = location(one.caller)
    found = {
        "site": location(one.site) or (None if one.label is None else label(one.label, SITE_LABELS)),
        "caller": caller if caller != location(one.site) else None,
        "bytes": plain(one.bytes),
        "blocks": plain(one.blocks),
        "category": one.category,
    }
    return {name: value for name, value in found.items() if value is not None}


def _tensors(names: Iterable[NamedTensor]) -> list[dict[str, Any]]:
    """Tensors by name, largest first; those that are alike in everything are one row."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for one in names:
        alike.setdefault((one.name, one.category, one.dtype, one.shape), []).append(one.bytes)
    rows = sorted(alike.items(), key=lambda pair: -sum(pair[1]))
    return [
        {
            "name": clean(name) or None,
            "category": category,
            "bytes": plain(sum(sizes)),
            "tensors": len(sizes),
            "dtype": dtype,
            "shape": plain(shape),
        }
        for (name, category, dtype, shape), sizes in rows
    ]


def _largest(shares: Any) -> dict[str, int] | None:
    """What is not zero, largest first; None where nothing was attributed."""
    if not shares:
        return None
    return {name: plain(count) for name, count in sorted(shares.items(), key=lambda pair: -pair[1]) if count}
