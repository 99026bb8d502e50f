"""The findings as Markdown for a ticket: GitHub's dialect, under 60 kB, and legible as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.verdict.records import Advice, Oom
from oomscope.analysis.whatif.records import WhatIf
from oomscope.rendering.common import said_tables, tables
from oomscope.rendering.common.shares import shares
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.tables import Table
from oomscope.rendering.common.whatif_table import WhatIfView, changing, left_every_pass, view
from oomscope.rendering.html.culprit import culprit
from oomscope.units import format_bytes, plural
from oomscope.wording.certainty import certainty
from oomscope.wording.clean import clean
from oomscope.wording.instants import elsewhere, instant_of
from oomscope.wording.opening import occasion, replay_text, verdict_text
from oomscope.wording.page import effect_text
from oomscope.wording.paths import Shorten, shortener
from oomscope.wording.said import said_text
from oomscope.wording.verdict_text import advice_text
from oomscope.wording.whatif_table import EXPLAINED_BY, NOTHING_CHANGES, TITLE, unchanged_text
from oomscope.wording.window import shown_part

MAX_BYTES = 60_000
"""GitHub cuts comments at 65,536 characters, Jira at 32,767 by default; tables of a usual report stay below both."""

# An underscore inside a word is no markup, and easier to read bare.
_PUNCTUATION = re.compile(r"([\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_]))")
# A zero-width space keeps @names, #123 and bare addresses from becoming mentions, references and links.
_LINKS = re.compile(r"(@|#(?=\d)|\bGH-(?=\d)|://|\bwww\.)", re.IGNORECASE)


# Within code nothing can be escaped, so only what means nothing anywhere is shown as code.
_PLAIN_CODE = re.compile(r"[\w .,:;()\[\]{}=+*\'\"→…-]+")
_TAG = re.compile(r"<(?=[a-zA-Z/!?])(?!(?:module|lambda|locals|genexpr|\w+comp|string|stdin|frozen [\w.]+)>)")
"""What begins a tag in a place where nothing can be escaped; names of Python's own are none."""
_TOP = 6
_MOST_ADVICE = 12


def escaped(text: str) -> str:
    """`text` so that rendered Markdown shows it as it is: no markup, HTML, mention, reference or link comes of it."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKS.sub("\\1\u200b", _PUNCTUATION.sub(r"\\\1", text))


def prose(text: str) -> str:
    """A sentence of oomscope's: what stands between its backticks is code, all else is shown as it is."""
    parts = text.split("`")
    if len(parts) % 2 == 0 or not all(map(_PLAIN_CODE.fullmatch, parts[1::2])):
        return escaped(text)
    return "".join(f"`{part}`" if number % 2 else escaped(part) for number, part in enumerate(parts))


def render_markdown(findings: Findings, *, title: str | None = None, sources: Sources | None = None) -> str:
    """The findings as Markdown, less than `MAX_BYTES` in UTF-8 whatever the snapshot holds."""
    shorten = shortener(findings.snapshot.stacks)
    head = [f"## {escaped(clean(title, 200))}"] if title else []
    head += [
        f"### {escaped(occasion(findings, shorten))}",
        escaped(shown_part(findings) or ""),
        f"**{prose(verdict_text(findings))}**",
    ]
    sources = sources if sources is not None else Sources(findings.snapshot)
    sections = head + (_device(findings, findings.main, shorten, sources) if findings.main else [])
    if findings.main is None:
        sections += [table_text(said_tables.counted(findings)), table_text(said_tables.counted_holders(findings, 15))]
    sections += [
        folded("How sure this is", _bullets(certainty(findings)[:30])),
        "<sub>Made with oomscope from a PyTorch memory snapshot.</sub>",
    ]
    return fitted([section for section in sections if section])


def _device(findings: Findings, device: DeviceFindings, shorten: Shorten, sources: Sources) -> list[str]:
    when = instant_of(findings.at, device)
    advice = device.oom.verdict.advice[:_MOST_ADVICE] if device.oom else ()
    evidence = tables.evidence_line(device)
    return [
        _source(device, sources, shorten),
        _advice(advice, device.oom),
        escaped(replay_text(findings) or ""),
        f"**Who holds the {format_bytes(device.at.allocated)} in use, {escaped(when)}**\n\n{_shares(device, shorten)}",
        f"<sub>How we know: {escaped(evidence)}.</sub>" if evidence else "",
        escaped(elsewhere(findings.at, device) or ""),
        escaped((device.oom and said_text(device.oom.said)) or ""),
        folded(f"Memory, {when}", table_text(tables.memory(device))),
        *(
            _replays(answer, left_every_pass(device))
            for answer in findings.whatif
            if answer.device == device.device and answer.rows
        ),
        *(folded(table.title, table_text(table)) for table in _tables(findings, device, shorten)),
        _stacks(device),
    ]


def _tables(findings: Findings, device: DeviceFindings, shorten: Shorten) -> list[Table]:
    """What is folded, in the order in which it is asked for."""
    return [
        tables.holders(device, 20),
        replace(tables.sites(device, shorten, 30), title="By line of code"),
        tables.categories(device),
        tables.phases(device),
        tables.names(device, 20),
        tables.growth(device, shorten, 15),
        tables.pins(device, shorten, 15),
        tables.steps(device, 20),
        tables.ooms(device, shorten, 10),
        tables.pools(device, 15),
        said_tables.named(device, 15),
        said_tables.private_pools(device, 15),
        said_tables.pinned(findings),
        said_tables.pinned_sites(findings, shorten, 15),
        tables.bill(device),
        tables.other_devices(findings),
    ]


def _source(device: DeviceFindings, sources: Sources, shorten: Shorten) -> str:
    """The line to look at, quoted with its neighbours, or by its name alone; empty where no stack names one."""
    line = culprit(device, shorten, sources)
    if line is None:
        return ""
    where = f"{line.file}:{line.line}"
    named = escaped(f"{f'{line.function} ({where})' if line.function else where}: {line.note}")
    if line.excerpt is None:
        return named
    block = [
        f"{'→' if is_it else ' '} {number:>5}  {clean(text, 160)}".rstrip().replace("```", "'''")
        for number, text, is_it in line.excerpt.lines
    ]
    return "\n".join([named, "", "```python", *block, "```"])


def _shares(device: DeviceFindings, shorten: Shorten) -> str:
    allocated = max(device.at.allocated, 1)
    rows = tuple(
        (format_bytes(row.bytes), tables.percent_text(row.bytes, allocated), row.text)
        for row in shares(device, shorten, _TOP)
    )
    return table_text(Table("", ("bytes", "share", "what"), rows, frozenset({0, 1})))


def _replays(answer: WhatIf, per_pass: int | None) -> str:
    """The settings that change something as a table, the rest by name."""
    changed, unchanged = changing(answer)
    said = unchanged_text(unchanged)
    if len(changed.rows) < 2 and answer.self_check.exact:
        return f"{NOTHING_CHANGES} {escaped(said)}".strip()
    shown = _answers(view(changed, per_pass))
    return folded(TITLE, "\n\n".join(filter(None, (*shown, escaped(said), EXPLAINED_BY))))


def whatif_section(answer: WhatIf) -> str:
    """The answers under other settings: whether to trust them, the table, its notes and what it assumes."""
    shown = view(answer)
    return "\n\n".join([*_answers(shown), shown.explained, shown.conditions])


def _answers(shown: WhatIfView) -> list[str]:
    notes = "\n".join(f"- {escaped(note)}" for note in shown.numbered)
    return [part for part in (escaped(shown.check), table_text(shown.table), notes, escaped(shown.common)) if part]


def table_text(table: Table) -> str:
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


def folded(title: str, body: str) -> str:
    """`body` to be opened under `title`; empty where it is."""
    # The blank lines are what lets GitHub read Markdown inside of HTML.
    return f"<details><summary>{escaped(title)}</summary>\n\n{body}\n\n</details>" if body else ""


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(item)}" for item in items)


def _advice(advice: Sequence[Advice], oom: Oom | None) -> str:
    """What to do, best first; what would not have helped in one line that opens."""
    helps = [_advice_item(one, oom) for one in advice if oom and not one.refuted]
    refuted = [_refuted_item(one) for one in advice if one.refuted]
    parts = ["**What to do**\n\n" + "\n".join(helps)] if helps else []
    if refuted:
        parts.append(folded("What would not have helped", "\n".join(refuted)))
    return "\n\n".join(parts)


def _advice_item(advice: Advice, oom: Oom) -> str:
    words = advice_text(advice)
    action = prose(clean(words.action, 400).rstrip("."))
    why = f" {prose(clean(words.why, 600))}" if words.why else ""
    price = f" Price: {escaped(clean(words.price, 300))}." if words.price else ""
    effect = effect_text(advice, oom)
    return f"1. **{action}**{f' ({effect})' if effect else ''}.{why}{price}"


def _refuted_item(advice: Advice) -> str:
    words = advice_text(advice)
    return f"- **{prose(clean(words.action, 400).rstrip('.'))}**: {prose(clean(words.why, 600))}"


def _stacks(device: DeviceFindings) -> str:
    """The stack of the request that failed, innermost first."""
    if device.oom is None or not device.oom.stack:
        return ""
    lines = [_TAG.sub("‹", clean(line, 200).replace("```", "'''")) for line in device.oom.stack[:40]]
    return folded("Stack of the failed request", "```text\n" + "\n".join(lines) + "\n```")


def fitted(sections: list[str]) -> str:
    """The sections as one text; where they are too long, without the last ones that are folded."""
    note = "*Shortened to fit a comment; the full report (`--format html` or `json`) has everything.*"
    shortened = False
    while len(text := "\n\n".join([*sections, note] if shortened else sections).encode()) >= MAX_BYTES - 1:
        details = [at for at, section in enumerate(sections) if section.startswith("<details>")]
        del sections[details[-1] if details else -1]
        shortened = True
    return text.decode() + "\n"
