"""What ``oomscope check`` prints: a table, JSON, JUnit XML, or annotations for GitHub."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich.console import Group, RenderableType
from rich.text import Text

from oomscope.analysis.compare.budget import SITE, Checked, CheckResult
from oomscope.analysis.compare.figures import SiteFigure
from oomscope.rendering.common.tables import Table
from oomscope.rendering.json_plain import dumped, plain
from oomscope.rendering.text.terminal import section
from oomscope.units import format_bytes
from oomscope.wording.check import (
    INCOMPLETE,
    blamed,
    broken_text,
    budget_label,
    check_headline,
    first_line,
    unknown_text,
)
from oomscope.wording.clean import clean
from oomscope.wording.diff import signed_bytes
from oomscope.wording.labels import SITE_LABELS, label
from oomscope.wording.paths import Shorten, shortener_of

CHECK_SCHEMA_VERSION = 1
CHECK_SCHEMA = Path(__file__).with_name("check.schema.json")
UNKNOWN = "unknown"
MOST_ROWS = 20
MOST_BLAMED = 3


def shorten_for(result: CheckResult) -> Shorten:
    """Short names for the files in `result`."""
    lines = (where for one in result.checked for blame in one.by for where in (blame.site, blame.caller) if where)
    return shortener_of(where.file for where in lines)


def check_to_json(result: CheckResult, file: str) -> str:
    """The document that ``oomscope check --format json`` prints; see `check.schema.json`."""
    return dumped(check_document(result, file)) + "\n"


def check_document(result: CheckResult, file: str) -> dict[str, Any]:
    """The outcome as plain containers."""
    return {
        "schema_version": CHECK_SCHEMA_VERSION,
        "ok": result.ok,
        "file": file,
        "headline": check_headline(result),
        "complete": result.complete,
        "broken": [_checked(one) for one in result.broken],
        "unknown": [_checked(one) for one in result.unknown],
        "checked": [_checked(one) for one in result.checked],
        "next": ["oomscope report SNAPSHOT --at peak", "oomscope diff BEFORE SNAPSHOT"],
    }


def _checked(one: Checked) -> dict[str, Any]:
    return {
        "budget": one.budget,
        "name": one.name,
        "limit": one.limit,
        "found": one.found,
        "baseline": one.baseline,
        "ok": one.ok,
        "by": _blamed(one.by[0]) if one.by else None,
        "sites": [_blamed(blame) for blame in one.by],
    }


def _blamed(one: SiteFigure) -> dict[str, Any]:
    words = None if one.label is None else label(one.label, SITE_LABELS)
    site = {"file": None, "line": None, "function": None} if one.site is None else plain(one.site)
    return {**plain(one), "site": site, "label": words, "label_code": one.label}


def check_shown(result: CheckResult, file: str) -> RenderableType:
    """The outcome for a rich console."""
    shorten = shorten_for(result)
    parts: list[RenderableType] = [Text(clean(file, 200), style="dim"), Text(check_headline(result), style="bold")]
    parts += [Text(unknown_text(one, shorten)) for one in result.unknown]
    if not result.complete:
        parts.append(Text(INCOMPLETE))
    parts.append(Text())
    parts += section(_table(result, shorten))
    for one in result.broken:
        if one.budget != SITE:
            parts += section(_blame(one, shorten))
    return Group(*parts)


def _table(result: CheckResult, shorten: Shorten) -> Table:
    words = {True: "ok", False: "BROKEN", None: UNKNOWN}
    rows: list[tuple[str, ...]] = [
        (
            words[one.ok],
            budget_label(one, shorten),
            "" if one.baseline is None else format_bytes(one.baseline),
            format_bytes(one.limit),
            UNKNOWN if one.found is None else format_bytes(one.found),
            signed_bytes(one.found - one.limit) if one.found is not None and not one.ok else "",
        )
        for one in sorted(result.checked, key=lambda one: one.ok is not False)
    ]
    headings: tuple[str, ...] = ("", "what", "baseline", "limit", "found", "over")
    if all(one.baseline is None for one in result.checked):
        rows, headings = [(*row[:2], *row[3:]) for row in rows], (*headings[:2], *headings[3:])
    shown = tuple(rows[:MOST_ROWS])
    return Table("Budgets", headings, shown, frozenset(range(2, len(headings))), len(rows) - len(shown))


def _blame(one: Checked, shorten: Shorten) -> Table:
    """Who broke a budget."""
    heading = "bytes" if one.baseline is None else "more"
    rows = tuple((format_bytes(blame.bytes), blamed(blame, shorten)) for blame in one.by[:MOST_BLAMED])
    return Table(f"Who: {budget_label(one, shorten)}", (heading, "site ← caller"), rows, frozenset({0}))


def check_to_junit(result: CheckResult, file: str) -> str:
    """The outcome as JUnit XML: a test case for each budget."""
    shorten = shorten_for(result)
    counts = {"tests": len(result.checked), "failures": len(result.broken), "errors": 0, "skipped": len(result.unknown)}
    suite = ElementTree.Element(
        "testsuite", {"name": "oomscope check", **{name: str(count) for name, count in counts.items()}}
    )
    for one in result.checked:
        name = budget_label(one, shorten)
        case = ElementTree.SubElement(suite, "testcase", {"classname": _xml(clean(file, 200)), "name": _xml(name)})
        if one.ok is False:
            failure = ElementTree.SubElement(case, "failure", {"message": _xml(broken_text(one, shorten))})
            failure.text = _xml("\n".join(f"{format_bytes(by.bytes)} {blamed(by, shorten)}" for by in one.by))
        elif one.ok is None:
            ElementTree.SubElement(case, "skipped", {"message": _xml(unknown_text(one, shorten))})
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """`text` without what XML cannot hold: lone surrogates and two code points at the end of the plane."""
    return "".join("�" if "\ud800" <= sign <= "\udfff" or sign in "\ufffe\uffff" else sign for sign in text)


def check_to_github(result: CheckResult, file: str) -> str:
    """The outcome as workflow commands: an annotation at the line that broke each budget."""
    shorten = shorten_for(result)
    lines = [_annotation("error", one, broken_text(one, shorten), shorten) for one in result.broken]
    lines += [_annotation("warning", one, unknown_text(one, shorten), shorten) for one in result.unknown]
    if not lines:
        lines = [f"::notice title=GPU memory::{_data(f'{clean(file, 200)}: {check_headline(result)}')}"]
    return "\n".join(lines) + "\n"


def _annotation(level: str, one: Checked, text: str, shorten: Shorten) -> str:
    where = first_line(one)
    at = "" if where is None else f"file={_property(shorten(where.file))},line={where.line},"
    return f"::{level} {at}title=GPU memory::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
