"""What-if answers as text: for the terminal, as Markdown, as JSON."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from oomscope.analysis.whatif.records import WhatIf, WhatIfRow
from oomscope.rendering.common.whatif_table import CONDITIONS
from oomscope.rendering.markdown import whatif_section
from oomscope.rendering.text import terminal

SCHEMA_VERSION = 1


def to_json(answer: WhatIf) -> str:
    """The document that ``oomscope whatif --format json`` prints."""
    return json.dumps(as_document(answer), indent=2) + "\n"


def as_document(answer: WhatIf) -> dict[str, Any]:
    """The answer as plain containers."""
    check = answer.self_check
    return {
        "schema_version": SCHEMA_VERSION,
        "device": answer.device,
        "self_check": {
            "addresses": check.addresses,
            "segment_events": check.segment_events,
            "mismatches": check.mismatches,
            "first_mismatch": check.first_mismatch,
            "reason": check.reason,
        },
        "whatif": [row_as_dict(row) for row in answer.rows],
        "skipped": list(answer.skipped),
        "notes": list(answer.notes),
        "conditions": CONDITIONS,
    }


def row_as_dict(row: WhatIfRow) -> dict[str, Any]:
    """One row as plain containers; unknown values are None."""
    values = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "notes"}
    values["range"] = {name: list(span) for name, span in row.range.items()}
    return {**values, "note": row.note}


def to_text(answer: WhatIf, width: int = terminal.WIDTH) -> str:
    """The answer as plain text of at most `width` columns."""
    return terminal.plain(terminal.whatif(answer), width)


def to_markdown(answer: WhatIf) -> str:
    """The answer as GitHub-flavoured Markdown."""
    return f"### What if, device {answer.device}\n\n{whatif_section(answer)}\n"
