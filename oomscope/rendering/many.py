"""What ``oomscope ranks``, ``triage`` and ``digest`` print: text and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from oomscope.analysis.compare.digest import Digest, as_document
from oomscope.analysis.compare.ranks import Outlier, OutlierSite, Ranks, SiteSpread, number
from oomscope.analysis.compare.triage import TriageGroup
from oomscope.rendering.common.tables import Table
from oomscope.rendering.json_plain import dumped, plain
from oomscope.rendering.text.terminal import WIDTH, section
from oomscope.rendering.text.terminal import plain as printed
from oomscope.units import format_bytes, plural
from oomscope.wording.clean import clean
from oomscope.wording.diff import signed_bytes
from oomscope.wording.labels import CAUSE_LABELS, SITE_LABELS, label
from oomscope.wording.ranks import end_words, group_words, line_words, missing_text, rank_words, ranks_headline

MANY_VERSION = 1
RANKS_SCHEMA = Path(__file__).with_name("ranks.schema.json")
TRIAGE_SCHEMA = Path(__file__).with_name("triage.schema.json")
_RANKS, _SITES, _GROUPS = 40, 8, 20


def ranks_document(found: Ranks, bad: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The ranks as plain containers; see `ranks.schema.json`."""
    return {
        "schema_version": MANY_VERSION,
        "headline": ranks_headline(found),
        "ranks": [_rank(one) for one in found.ranks],
        "first": found.first,
        "followed": list(found.followed),
        "missing": list(found.missing),
        "repeated": list(found.repeated),
        "outliers": [_outlier(one) for one in found.outliers],
        "sites": [_line(one) for one in found.sites],
        "categories": plain(found.categories),
        "peaks": plain(found.peaks),
        "ends": plain(found.ends),
        "bad_files": [dict(one) for one in bad],
        "next": ["oomscope report FILE", "oomscope diff FILE OTHER"],
    }


def _rank(one: Digest) -> dict[str, Any]:
    names = (
        "rank", "rank_source", "file", "host", "device", "reason", "peak_allocated", "peak_reserved", "allocated",
        "oom_time_us", "cause", "headline", "fingerprint",
    )  # fmt: skip
    return {name: getattr(one, name) for name in names}


def _outlier(one: Outlier) -> dict[str, Any]:
    sites = [_line(site) for site in one.sites]
    return {"rank": one.rank, "bytes": one.bytes, "sites": sites, "categories": dict(one.categories)}


def _line(row: OutlierSite | SiteSpread) -> dict[str, Any]:
    words = None if row.label is None else label(row.label, SITE_LABELS)
    site = {"file": None, "line": None, "function": None} if row.site is None else plain(row.site)
    return {**plain(row), "site": site, "label": words, "label_code": row.label}


def ranks_to_json(found: Ranks, bad: Sequence[Mapping[str, str]]) -> str:
    """The document that ``oomscope ranks --format json`` prints."""
    return dumped(ranks_document(found, bad)) + "\n"


def ranks_shown(found: Ranks) -> RenderableType:
    """The ranks for a rich console."""
    parts: list[RenderableType] = [Text(ranks_headline(found), style="bold")]
    parts += [Text(text) for text in (missing_text(found), _repeated(found)) if text]
    parts.append(Text())
    parts += section(_rank_table(found))
    for one in found.outliers[:2]:
        parts += section(_outlier_table(one))
    if not found.outliers and len(found.ranks) > 1:
        parts += section(_spread_table(found))
    return Group(*parts)


def _repeated(found: Ranks) -> str:
    count = len(found.repeated)
    return f"{plural(count, 'more file')} of the same ranks left out." if count else ""


def _rank_table(found: Ranks) -> Table:
    apart = {one.rank: one.bytes for one in found.outliers}
    shown = sorted(found.ranks, key=lambda one: (number(one) != found.first, -abs(apart.get(number(one), 0))))[:_RANKS]
    rows = tuple(
        (
            rank_words(one),
            "unknown" if one.peak_allocated is None else format_bytes(one.peak_allocated),
            signed_bytes(apart[number(one)]) if number(one) in apart else "",
            ("first: " if number(one) == found.first else "") + end_words(one),
        )
        for one in shown
    )
    headings = ("rank", "peak", "from median", "end")
    return Table("Ranks", headings, rows, frozenset({0, 1, 2}), len(found.ranks) - len(shown))


def _outlier_table(one: Outlier) -> Table:
    rows = tuple(
        (signed_bytes(row.bytes - row.median), format_bytes(row.bytes), format_bytes(row.median), line_words(row))
        for row in one.sites[:_SITES]
    )
    headings = ("more", f"rank {one.rank}", "median", "site ← caller")
    title = f"What sets rank {one.rank} apart"
    return Table(title, headings, rows, frozenset({0, 1, 2}), max(0, len(one.sites) - len(rows)))


def _spread_table(found: Ranks) -> Table:
    rows = tuple(
        (format_bytes(row.min), format_bytes(row.median), format_bytes(row.max), str(row.max_rank), line_words(row))
        for row in found.sites[:_SITES]
    )
    headings = ("least", "median", "most", "on rank", "site ← caller")
    more = max(0, len(found.sites) - len(rows))
    return Table("Largest sites over all ranks", headings, rows, frozenset({0, 1, 2, 3}), more)


def ranks_to_text(found: Ranks, width: int = WIDTH) -> str:
    """The ranks as plain text of at most `width` columns."""
    return printed(ranks_shown(found), width)


def triage_document(groups: Sequence[TriageGroup], bad: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The groups as plain containers; see `triage.schema.json`."""
    return {
        "schema_version": MANY_VERSION,
        "groups": [plain(one) for one in groups],
        "bad_files": [dict(one) for one in bad],
        "next": ["oomscope report EXAMPLE"],
    }


def triage_to_json(groups: Sequence[TriageGroup], bad: Sequence[Mapping[str, str]]) -> str:
    """The document that ``oomscope triage --format json`` prints."""
    return dumped(triage_document(groups, bad)) + "\n"


def triage_shown(groups: Sequence[TriageGroup]) -> RenderableType:
    """The groups for a rich console."""
    count = sum(one.count for one in groups)
    parts: list[RenderableType] = [
        Text(f"{plural(count, 'dump')} of {plural(len(groups), 'kind')}.", style="bold"),
        Text(),
    ]
    for one in groups[:_GROUPS]:
        cause = "No OOM" if one.cause is None else label(one.cause, CAUSE_LABELS)
        jobs = plural(len(one.jobs), "job")
        parts.append(Text(f"{one.count:,} × {cause} · {jobs} · {one.fingerprint}", style="bold"))
        if one.cause is not None:
            parts.append(Text(f"  {group_words(one)}"))
        seen = " to ".join(dict.fromkeys(filter(None, (one.first_seen, one.last_seen))))
        parts += [Text(f"  {clean(' · '.join(filter(None, (seen, one.example))), 200)}", style="dim"), Text()]
    if more := len(groups) - _GROUPS:
        parts.append(Text(f"and {plural(more, 'more kind')}" if more > 0 else ""))
    return Group(*parts)


def triage_to_text(groups: Sequence[TriageGroup], width: int = WIDTH) -> str:
    """The groups as plain text of at most `width` columns."""
    return printed(triage_shown(groups), width)


def digests_to_json(digests: Sequence[Digest]) -> str:
    """The document that ``oomscope digest`` prints."""
    return dumped({**as_document(digests), "next": ["oomscope ranks FILE", "oomscope triage FILE"]}) + "\n"
