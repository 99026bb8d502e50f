"""What replays say, in few bytes: settings, remedies, other shapes; and what a comparison or a log says."""

from __future__ import annotations

from typing import Any

from oomscope.analysis.compare.records import Diff
from oomscope.analysis.ledger.records import Ledger
from oomscope.analysis.plan.records import Plan
from oomscope.analysis.whatif.records import WhatIf, WhatIfRow
from oomscope.messages.records import Log
from oomscope.rendering import diff as diffs
from oomscope.rendering import explain as explained
from oomscope.rendering import plan as plans
from oomscope.rendering.answers.parts import document
from oomscope.rendering.json_plain import plain
from oomscope.rendering.ledger import rows_as_dicts
from oomscope.wording import say
from oomscope.wording.next_commands import next_after_whatif
from oomscope.wording.whatif_table import notes_text

_FIGURES = (
    "setting",
    "oom",
    "peak_reserved",
    "peak_allocated",
    "headroom",
    "least_memory",
    "limit",
    "retries",
    "exact",
)
_SIZES = ("reserved", "allocated", "active")


def whatif(answer: WhatIf) -> dict[str, Any]:
    """The recorded setting and the others, row by row."""
    found = {
        "device": answer.device,
        "self_check": {
            "exact": answer.self_check.exact,
            "addresses": answer.self_check.addresses,
            "mismatches": answer.self_check.mismatches,
            "reason": None if answer.self_check.reason is None else say(answer.self_check.reason),
        },
        "notes": [say(note) for note in answer.notes],
        "whatif": [_row(row) for row in answer.rows],
        "skipped": list(answer.skipped),
    }
    return document(found, next_after_whatif(answer))


def _row(row: WhatIfRow) -> dict[str, Any]:
    served = {str(entry): known for entry, known in row.served.items()}
    return {**{name: plain(getattr(row, name)) for name in _FIGURES}, "served": served, "note": notes_text(row) or None}


def remedies(ledger: Ledger) -> dict[str, Any]:
    """What each remedy would make of the peak, what saves most first."""
    found = {
        "device": ledger.device,
        "peak_allocated": plain(ledger.peak_allocated),
        "failed": ledger.failed,
        "limit": plain(ledger.limit),
        "notes": [say(one) for one in ledger.notes],
        "remedies": rows_as_dicts(ledger),
        "nothing_to_do": list(ledger.skipped),
    }
    return document(found, ["oomscope whatif SNAPSHOT", "oomscope report SNAPSHOT"])


def plan(answer: Plan) -> dict[str, Any]:
    """Peaks at other shapes and what fits, without the shares of each kind of memory."""
    full = plans.as_document(answer)
    names = ("schema_version", "device", "notes", "largest", "predictions", "from", "alignment", "next")
    found = {name: full[name] for name in names}
    found["predictions"] = [
        {name: value for name, value in row.items() if name != "at_peak"} for row in full["predictions"]
    ]
    return found


def diff(answer: Diff) -> dict[str, Any]:
    """What changed, with the largest changes by line; rows that did not change are left out."""
    full = diffs.diff_document(answer)
    found = {
        name: full[name]
        for name in ("schema_version", "at", "headline", "nothing_changed", "change", "peak", "unaccounted")
    }
    for side in ("before", "after"):
        found[side] = {name: full[side][name] for name in ("file", "device", *_SIZES) if name in full[side]}
    found["sites"] = [_changed(row) for row in full["sites"] if row["change"]]
    for name in ("holders", "growth", "categories", "settings", "versions", "passes"):
        found[name] = full[name]
    return {**found, "next": full["next"]}


def _changed(row: dict[str, Any]) -> dict[str, Any]:
    names = ("change", "before", "after", "before_blocks", "after_blocks", "category", "label", "why")
    site = row["site"]
    where = None if site is None or site.get("file") is None else f"{site['file']}:{site['line']} {site['function']}"
    return {"site": where, **{name: row[name] for name in names if row.get(name) is not None}}


def explain(log: Log) -> dict[str, Any]:
    """The messages of a log, without codes and figures that are not printed."""
    full = explained.as_document(log)
    messages = [
        {name: value for name, value in message.items() if name != "note_codes" and value not in (None, {}, [])}
        for message in full["messages"]
    ]
    return {"schema_version": full["schema_version"], "read": full["read"], "messages": messages, "next": full["next"]}
