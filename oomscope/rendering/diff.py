"""What ``oomscope diff`` prints: text, Markdown or JSON; the page is in html/diff_page.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from oomscope.analysis.compare.records import Diff, Side, SiteChange
from oomscope.rendering.common import diff_tables
from oomscope.rendering.json_plain import dumped, plain
from oomscope.rendering.markdown import escaped, fitted, folded, prose, table_text
from oomscope.rendering.text.terminal import WIDTH, section
from oomscope.rendering.text.terminal import plain as printed
from oomscope.wording.diff import diff_headline, diff_lead, file_words, why
from oomscope.wording.labels import SITE_LABELS, label

SCHEMA_VERSION = 1
DIFF_SCHEMA = Path(__file__).with_name("diff.schema.json")
_ROWS, _ROWS_MARKDOWN = 8, 30
MOST_SITES = 1000
"""Rows of the JSON document; smaller changes are one last row."""


def diff_to_json(diff: Diff) -> str:
    """The document that ``oomscope diff --format json`` prints; see `diff.schema.json`."""
    return dumped(diff_document(diff)) + "\n"


def diff_document(diff: Diff) -> dict[str, Any]:
    """The comparison as plain containers."""
    scaling = diff.scaling
    return {
        "schema_version": SCHEMA_VERSION,
        "at": diff.at,
        "nothing_changed": diff.nothing_changed,
        "headline": diff_headline(diff),
        "before": _side(diff.before),
        "after": _side(diff.after),
        "change": plain(diff.change),
        "peak": plain(diff.peak),
        "unaccounted": diff.unaccounted,
        "ratio": {"category": {}, "uniform": False, "factor": None, "explained": 0, "squared": 0, "sites": 0}
        if scaling is None
        else plain(scaling),
        "sites": _sites(diff),
        "categories": plain(diff.categories),
        "phases": plain(diff.phases),
        "holders": _named(diff.holders, "holder"),
        "names": _named(diff.names, "name"),
        "stacks": [{**plain(row), "change": row.change} for row in diff.stacks],
        "fragmentation": plain(diff.fragmentation),
        "growth": [_place(plain(row)) for row in diff.growth],
        "passes": {"before": diff.before.passes, "after": diff.after.passes},
        "settings": plain(diff.settings),
        "versions": plain(diff.versions),
        "next": ["oomscope report AFTER", f"oomscope diff BEFORE AFTER --at {'end' if diff.at != 'end' else 'peak'}"],
    }


def _side(side: Side) -> dict[str, Any]:
    found = plain(side)
    return {**{name: value for name, value in found.items() if name not in ("totals", "passes")}, **found["totals"]}


def _sites(diff: Diff) -> list[dict[str, Any]]:
    rows = [_site(row) for row in diff.sites[:MOST_SITES]]
    if rest := diff.sites[MOST_SITES:]:
        was, now = sum(row.before for row in rest), sum(row.after for row in rest)
        blocks = sum(row.before_blocks for row in rest), sum(row.after_blocks for row in rest)
        rows.append(_site(SiteChange(None, None, "all_others", was, now, *blocks, "unknown", "same", "sizes")))
    return rows


def _site(row: SiteChange) -> dict[str, Any]:
    found = _place(plain(row))
    return {**found, "change": row.change, "rest": row.rest, "why": why(row)}


def _place(row: dict[str, Any]) -> dict[str, Any]:
    """`row` with its reason for having no site in words, and as a code beside them, as in the report."""
    code = row["label"]
    row["label"] = None if code is None else label(code, SITE_LABELS)
    row["label_code"] = code
    if row["site"] is None:
        row["site"] = {"file": None, "line": None, "function": None}
    return row


def _named(rows: Any, key: str) -> list[dict[str, Any]] | None:
    if rows is None:
        return None
    return [
        {key: row.name, "kind": row.kind, "before": row.before, "after": row.after, "change": row.change}
        for row in rows
    ]


def diff_shown(diff: Diff) -> RenderableType:
    """The comparison for a rich console."""
    names = diff_tables.names_of(diff)
    parts: list[RenderableType] = [Text(_files(diff), style="dim"), Text(diff_headline(diff), style="bold")]
    parts += [Text(sentence) for sentence in diff_lead(diff, names.after)]
    parts.append(Text())
    if diff.nothing_changed:
        return Group(*parts[:-1])
    parts += section(diff_tables.totals(diff))
    for table in diff_tables.all_tables(diff, names, _ROWS):
        parts += section(table)
    return Group(*parts)


def _files(diff: Diff) -> str:
    return f"{file_words(diff.before.file)} → {file_words(diff.after.file)}"


def diff_to_text(diff: Diff, width: int = WIDTH) -> str:
    """The comparison as plain text of at most `width` columns."""
    return printed(diff_shown(diff), width)


def diff_to_markdown(diff: Diff) -> str:
    """The comparison as GitHub-flavoured Markdown that fits in a comment."""
    names = diff_tables.names_of(diff)
    parts = [f"### {escaped(_files(diff))}", f"**{prose(diff_headline(diff))}**"]
    parts += [" ".join(prose(sentence) for sentence in diff_lead(diff, names.after))]
    if not diff.nothing_changed:
        first, *rest = diff_tables.all_tables(diff, names, _ROWS_MARKDOWN)
        parts.append(table_text(diff_tables.totals(diff)))
        parts += [f"**{first.title}**\n\n{table_text(first)}"] if first.rows else []
        parts += [folded(table.title, table_text(table)) for table in rest if table.rows]
    return fitted([part for part in parts if part])
