"""What ``oomscope whatif`` prints: replays under other settings as text, Markdown or JSON."""

from __future__ import annotations

from typing import Any

from oomscope.analysis.whatif.records import WhatIf
from oomscope.rendering.json_plain import dumped
from oomscope.rendering.json_report import SCHEMA_VERSION, check_as_dict, row_as_dict, with_notes
from oomscope.rendering.markdown import whatif_section
from oomscope.rendering.text import terminal
from oomscope.wording.next_commands import next_after_whatif
from oomscope.wording.whatif_table import CONDITIONS


def to_json(answer: WhatIf) -> str:
    """The document that ``oomscope whatif --format json`` prints."""
    return dumped(as_document(answer)) + "\n"


def as_document(answer: WhatIf) -> dict[str, Any]:
    """The answer as plain containers."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "device": answer.device,
        "self_check": check_as_dict(answer.self_check),
        "whatif": [row_as_dict(row) for row in answer.rows],
        "skipped": list(answer.skipped),
        "conditions": CONDITIONS,
        "next": next_after_whatif(answer),
    }
    return with_notes(document, answer.notes)


def to_text(answer: WhatIf, width: int = terminal.WIDTH) -> str:
    """The answer as plain text of at most `width` columns."""
    return terminal.plain(terminal.whatif(answer), width)


def to_markdown(answer: WhatIf) -> str:
    """The answer as GitHub-flavoured Markdown."""
    return f"### What if, device {answer.device}\n\n{whatif_section(answer)}\n"
