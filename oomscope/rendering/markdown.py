"""The findings as Markdown for a ticket: GitHub's dialect, under 60 kB, and legible as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import Advice
from oomscope.analysis.whatif.records import WhatIf
from oomscope.rendering.common import tables
from oomscope.rendering.common.tables import Table
from oomscope.rendering.common.whatif_table import view
from oomscope.units import format_bytes, plural
from oomscope.wording.certainty import certainty
from oomscope.wording.clean import clean
from oomscope.wording.instants import elsewhere, instant
from oomscope.wording.opening import occasion, replay_text, verdict_text
from oomscope.wording.paths import Shorten, shortener
from oomscope.wording.verdict_text import advice_text
from oomscope.wording.whatif_table import TITLE

MAX_BYTES = 60_000
"""GitHub cuts comments at 65,536 characters, Jira at 32,767 by default; tables of a usual report stay below both."""

# An underscore inside a word is no markup, and easier to read bare.
_PUNCTUATION = re.compile(r"([\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_]))")
# A zero-width space keeps @names, #123 and bare addresses from becoming mentions, references and links.
_LINKS = re.compile(r"(@|#(?=\d)|\bGH-(?=\d)|://|\bwww\.)", re.IGNORECASE)


_TOP = 8


def escaped(text: str) -> str:
    """`text` so that rendered Markdown shows it as it is: no markup, HTML, mention, reference or link comes of it."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKS.sub("\\1\u200b", _PUNCTUATION.sub(r"\\\1", text))


def render_markdown(findings: Findings, *, title: str | None = None) -> str:
    """The findings as Markdown, less than `MAX_BYTES` in UTF-8 whatever the snapshot holds."""
    shorten = shortener(findings.snapshot.stacks)
    head = [f"## {escaped(clean(title, 200))}"] if title else []
    head += [
        f"### {escaped(occasion(findings, shorten))}",
        f"**{escaped(verdict_text(findings))}**",
        escaped(replay_text(findings) or ""),
    ]
    sections = head + (_device(findings, findings.main, shorten) if findings.main else [])
    sections += [
        _folded("How sure this is", _bullets(certainty(findings)[:30])),
        "<sub>Made with oomscope from a PyTorch memory snapshot.</sub>",
    ]
    return _fitted([section for section in sections if section])


def _device(findings: Findings, device: DeviceFindings, shorten: Shorten) -> list[str]:
    when = instant(findings.at, device.history.entries)
    verdict = device.oom.verdict if device.oom else None
    answers = [answer for answer in findings.whatif if answer.device == device.device and answer.rows]
    return [
        _table(tables.evidence(device, 10)),
        escaped(elsewhere(findings.at, device) or ""),
        f"**Memory, {escaped(when)}**\n\n{_table(tables.memory(device))}",
        _advice(verdict.advice[:12] if verdict else ()),
        _titled(tables.sites(device, shorten, _TOP)),
        *(_folded(TITLE, whatif_section(answer)) for answer in answers),
        *(
            _folded(table.title, _table(table))
            for table in (
                tables.categories(device),
                tables.phases(device),
                *([replace(tables.sites(device, shorten, 30), title="More sites")] if len(device.sites) > _TOP else []),
                tables.holders(device, 20),
                tables.names(device, 20),
                tables.growth(device, shorten, 15),
                tables.pins(device, shorten, 15),
                tables.steps(device, 20),
                tables.ooms(device, shorten, 10),
                tables.pools(device, 15),
                tables.bill(device),
                tables.other_devices(findings),
            )
        ),
        _stacks(device),
    ]


def whatif_section(answer: WhatIf) -> str:
    """The answers under other settings: whether to trust them, the table, its notes and what it assumes."""
    shown = view(answer)
    notes = "\n".join(f"- {escaped(note)}" for note in shown.numbered)
    parts = (escaped(shown.check), _table(shown.table), notes, escaped(shown.common), shown.explained, shown.conditions)
    return "\n\n".join(part for part in parts if part)


def _table(table: Table) -> str:
    """A table whose columns line up in the source as well; empty without rows."""
    if not table.rows:
        return ""
    rows = [[_cell(cell) for cell in row] for row in (table.headings, *table.rows)]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    right = table.right
    rule = [("-" * (width - 1) + ":") if at in right else "-" * width for at, width in enumerate(widths)]
    lines = [_line(row, widths, right) for row in (rows[0], rule, *rows[1:])]
    if table.more > 0:
        lines += ["", f"and {plural(table.more, 'more row')}"]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Leading blanks mark what is part of the row above; Markdown would drop them."""
    depth = (len(text) - len(text.lstrip())) // 2
    return "· " * depth + escaped(text.strip())


def _line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = (
        cell.rjust(width) if at in right else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join(padded)} |"


def _titled(table: Table) -> str:
    return f"**{escaped(table.title)}**\n\n{_table(table)}" if table.rows else ""


def _folded(title: str, body: str) -> str:
    # The blank lines are what lets GitHub read Markdown inside of HTML.
    return f"<details><summary>{escaped(title)}</summary>\n\n{body}\n\n</details>" if body else ""


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(item)}" for item in items)


def _advice(advice: Sequence[Advice]) -> str:
    if not advice:
        return ""
    return "**What to do**\n\n" + "\n".join(_advice_item(item) for item in advice)


def _advice_item(advice: Advice) -> str:
    words = advice_text(advice)
    action = escaped(clean(words.action, 400).rstrip("."))
    saves = f" (saves about {format_bytes(advice.saves_bytes)})" if advice.saves_bytes is not None else ""
    why = f" {escaped(clean(words.why, 600))}" if words.why else ""
    price = f" Cost: {escaped(clean(words.price, 300))}." if words.price else ""
    lead = "Would not have helped: " if advice.refuted else ""
    return f"- {lead}**{action}**{saves}.{why}{price}"


def _stacks(device: DeviceFindings) -> str:
    """The stack of the request that failed, innermost first."""
    if device.oom is None or not device.oom.stack:
        return ""
    lines = [clean(line, 200).replace("```", "'''") for line in device.oom.stack[:40]]
    return _folded("Stack of the failed request", "```text\n" + "\n".join(lines) + "\n```")


def _fitted(sections: list[str]) -> str:
    """The sections as one text; where they are too long, without the last ones that are folded."""
    note = "*Shortened to fit a comment; the full report (`--format html` or `json`) has everything.*"
    shortened = False
    while len(text := "\n\n".join([*sections, note] if shortened else sections).encode()) >= MAX_BYTES - 1:
        folded = [at for at, section in enumerate(sections) if section.startswith("<details>")]
        del sections[folded[-1] if folded else -1]
        shortened = True
    return text.decode() + "\n"
