"""What ``oomscope whatif`` prints: replays under other settings as text, Markdown or JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from oomscope.analysis.ledger.records import Ledger
from oomscope.analysis.whatif.records import WhatIf
from oomscope.rendering.json_plain import dumped
from oomscope.rendering.json_report import SCHEMA_VERSION, check_as_dict, row_as_dict, with_notes
from oomscope.rendering.ledger import pairs_as_dicts, rows_as_dicts
from oomscope.rendering.ledger import shown as ledger_shown
from oomscope.rendering.ledger import to_markdown as ledger_markdown
from oomscope.rendering.markdown import whatif_section
from oomscope.rendering.text import terminal
from oomscope.wording.next_commands import next_after_whatif
from oomscope.wording.whatif_table import CONDITIONS


def to_json(answer: WhatIf, ledger: Ledger | None = None) -> str:
    """The document that ``oomscope whatif --format json`` prints, with the ``remedies`` of a ledger."""
    document = as_document(answer)
    if ledger is not None:
        document |= {"remedies": rows_as_dicts(ledger), "remedies_skipped": list(ledger.skipped)}
        document["remedy_pairs"] = pairs_as_dicts(ledger)
        document["peak_allocated"] = ledger.peak_allocated
    return dumped(document) + "\n"


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


def shown(answer: WhatIf, ledger: Ledger | None = None) -> RenderableType:
    """The answer for a rich console; of one that was asked for remedies alone, the remedies."""
    if ledger is None:
        return terminal.whatif(answer)
    remedies = ledger_shown(ledger)
    return remedies if _only_recorded(answer) else Group(terminal.whatif(answer), Text(), remedies)


def to_text(answer: WhatIf, width: int = terminal.WIDTH, ledger: Ledger | None = None) -> str:
    """The answer as plain text of at most `width` columns."""
    return terminal.plain(shown(answer, ledger), width)


def to_markdown(answer: WhatIf, ledger: Ledger | None = None) -> str:
    """The answer as GitHub-flavoured Markdown."""
    section = f"### What if, device {answer.device}\n\n{whatif_section(answer)}\n"
    if ledger is None:
        return section
    remedies = ledger_markdown(ledger)
    return remedies if _only_recorded(answer) else f"{section}\n{remedies}"


def _only_recorded(answer: WhatIf) -> bool:
    return len(answer.rows) <= 1
