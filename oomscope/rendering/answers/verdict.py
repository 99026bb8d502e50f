"""Why a request failed and what would help: the first thing to ask of a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.verdict.records import Advice, Oom
from oomscope.messages.records import Log
from oomscope.rendering.answers.parts import about, document, location
from oomscope.rendering.answers.replays import explain
from oomscope.rendering.common.numbering import as_recorded
from oomscope.rendering.common.shares import shares
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html.culprit import culprit
from oomscope.rendering.json_plain import dumped, plain
from oomscope.rendering.json_report import at_document
from oomscope.rendering.json_verdict import slug, step_at
from oomscope.wording import say
from oomscope.wording.clean import clean
from oomscope.wording.next_commands import next_commands
from oomscope.wording.opening import occasion, replay_text, verdict_text
from oomscope.wording.paths import shortener
from oomscope.wording.verdict_text import advice_text

SUMMARY_SCHEMA = Path(__file__).parents[1] / "summary.schema.json"
_ROWS = 6
_LINE = 160


def opened(findings: Findings) -> dict[str, Any]:
    """What the snapshot is and holds: where it came from, what was recorded, and each device's figures."""
    found = {
        **about(findings),
        "at": at_document(findings),
        "devices": [_device(device) for device in findings.devices],
        "recording_notes": [say(note) for note in (*findings.recording.notes, *findings.snapshot.notes)],
    }
    return document(found, next_commands(findings))


def verdict(findings: Findings) -> dict[str, Any]:
    """Why the request failed, what would help, what would not, and what cannot be known."""
    device = findings.main
    found: dict[str, Any] = {
        "happened": occasion(findings, shortener(findings.snapshot.stacks)),
        "verdict": verdict_text(findings),
    }
    if device is not None and device.oom is not None:
        found |= _failure(findings, device, device.oom)
    found["replay"] = replay_text(findings)
    return document(found, next_commands(findings))


def summary(findings: Findings) -> dict[str, Any]:
    """One screen: the snapshot, its verdict and who holds the memory."""
    device = findings.main
    found = {**verdict(findings), **about(findings), "at": at_document(findings)}
    commands = found.pop("next")
    if device is not None:
        shorten = shortener(findings.snapshot.stacks)
        found |= {
            "device": device.device,
            "peak": as_recorded(plain(device.peak), device.first_entry),
            "allocated": plain(device.at.allocated),
            "reserved": plain(device.at.reserved),
            "in_use": [{"bytes": row.bytes, "what": clean(row.text)} for row in shares(device, shorten, _ROWS)],
        }
    return document(found, commands)


def summary_to_json(findings: Findings, log: Log | None = None) -> str:
    """The document that ``oomscope summary --format json`` prints; with what a log says, where there is one."""
    found = summary(findings)
    if log is not None:
        told, commands = explain(log), found.pop("next")
        found |= {"log": told["messages"], "next": list(dict.fromkeys([*commands, *told["next"]]))}
    return dumped(found) + "\n"


def _device(device: DeviceFindings) -> dict[str, Any]:
    return {
        "device": device.device,
        "name": device.name,
        "total": plain(device.device_total),
        "entries": device.history.entries,
        "ooms": device.failures,
        "peak": as_recorded(plain(device.peak), device.first_entry),
        "at": plain(device.at),
        "steps": {"count": device.steps.count, "source": device.steps.source},
        "names": len(device.names),
        "holders": len(device.holders),
        "unaccounted_bytes": plain(device.reconciliation.unaccounted_bytes),
    }


def _failure(findings: Findings, device: DeviceFindings, oom: Oom) -> dict[str, Any]:
    judged = oom.verdict
    line = culprit(device, shortener(findings.snapshot.stacks), Sources(findings.snapshot))
    source = None if line is None or line.excerpt is None else clean(line.excerpt.text, _LINE)
    return {
        "cause": judged.cause,
        "confidence": judged.confidence,
        "doubt": None if judged.doubt is None else say(judged.doubt),
        "line": None if line is None else {"at": f"{clean(line.file)}:{line.line}", "source": source},
        "fixes": [_advice(one) for one in judged.advice if not one.refuted],
        "request": {
            "bytes": plain(oom.requested),
            "entry": oom.entry + device.first_entry,
            "step": step_at(device.steps, oom.entry),
            "recovered": oom.recovered,
            "site": location(oom.site),
            "caller": location(oom.caller),
        },
        "limit": plain(oom.limit),
        "allocated": plain(oom.totals.allocated),
        "reserved": plain(oom.totals.reserved),
        "device_free": plain(oom.device_free),
        "suspects": [
            {
                "holder": clean(one.holder),
                "kind": one.kind,
                "retained": plain(one.retained),
                "tensors": plain(one.tensors),
                "passes": plain(one.passes),
                "let_go_at": location(one.at),
                "path": next((clean(path) for path in one.path), None),
            }
            for one in judged.suspects
        ],
        "drivers": [
            {"slug": one.slug, "bytes": plain(one.bytes), "site": location(one.site)} for one in judged.drivers
        ],
        "would_not_help": [_advice(one)["action"] for one in judged.advice if one.refuted],
        "cannot_know": [say(note) for note in judged.cannot_know],
        "contributing": list(judged.contributing),
        "also_qualifies": [one.cause for one in judged.qualifying if one.cause != judged.cause],
        "evidence": [{"slug": one.slug, "bytes": plain(one.bytes)} for one in judged.evidence],
    }


def _advice(advice: Advice) -> dict[str, Any]:
    words = advice_text(advice)
    return {
        "slug": slug(advice),
        "action": words.action,
        "saves_bytes": plain(advice.saves_bytes),
        "enough": advice.enough,
        "price": words.price or None,
        "at": location(advice.at),
    }
