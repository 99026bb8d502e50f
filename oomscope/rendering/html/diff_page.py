"""The page of a comparison: one file, bounded in size, in the look of the report."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.compare.matching import MOVED, RENAMED
from oomscope.analysis.compare.records import Diff, SiteChange
from oomscope.frozen import frozen
from oomscope.rendering.common import diff_tables
from oomscope.rendering.common.diff_tables import FileNames
from oomscope.rendering.common.tables import Table
from oomscope.rendering.html.one_file import framed, page_environment
from oomscope.rendering.html.page_size import MOST_BYTES, PAGE_CAPS, PageCaps
from oomscope.rendering.html.site_rows import Place, place_of
from oomscope.rendering.html.svg import StyleSheet
from oomscope.rendering.html.waterfall import Bar, waterfall
from oomscope.units import plural
from oomscope.version import __version__
from oomscope.wording import labels
from oomscope.wording.clean import clean
from oomscope.wording.diff import WHAT_CHANGED, diff_headline, diff_lead, signed_bytes, why
from oomscope.wording.page import EVERYTHING_ELSE
from oomscope.wording.paths import Shorten
from oomscope.wording.places import place

_SCRIPTS = ("base", "tables", "start_diff")
STEPS = 7
"""Sites that have a bar of their own."""
_ROWS, _FRAMES = 60, 24
_STACKS = 20
"""Rows that carry their stack."""


@frozen
class StepRow:
    """A bar of the figure in words; the last has no number."""

    number: int
    text: str
    why: str
    signed: str
    exact: str
    colour: str


@frozen
class LineRow:
    """A site that changed."""

    number: int
    place: Place
    old: str
    old_full: str
    category: str
    why: str
    before: int
    after: int
    change: int
    signed: str
    exact: str
    stack: tuple[str, ...]


@frozen
class LineSection:
    """Sites that changed for one kind of reason."""

    id: str
    short: str
    title: str
    rows: tuple[LineRow, ...]
    more: int


@frozen
class ComparisonPage:
    """Everything that the template reads."""

    title: str
    before: str
    after: str
    devices: str
    headline: str
    lead: list[str]
    steps: tuple[StepRow, ...]
    figure: Markup | None
    sections: tuple[LineSection, ...]
    totals: Table
    tables: tuple[Table, ...]
    unaccounted: str
    version: str


def diff_to_html(diff: Diff) -> str:
    """The whole page as HTML text, of at most `page_size.MOST_BYTES` in UTF-8 whatever the snapshots hold."""
    for caps in PAGE_CAPS:
        text = _rendered(diff, caps)
        if len(text.encode("utf-8", "backslashreplace")) <= MOST_BYTES:
            break
    return text


def _rendered(diff: Diff, caps: PageCaps) -> str:
    sheet = StyleSheet()
    full = diff_tables.names_of(diff)
    names = FileNames(_cut(full.after, caps.text), _cut(full.before, caps.text))
    page = _page(diff, names, caps, sheet)
    environment = page_environment(caps.text)
    return environment.get_template("diff.html").render(
        **framed(environment, sheet, _SCRIPTS, {}), page=page, labels=labels
    )


def _cut(shorten: Shorten, longest: int) -> Shorten:
    return lambda path: clean(shorten(path), longest)


def _page(diff: Diff, names: FileNames, caps: PageCaps, sheet: StyleSheet) -> ComparisonPage:
    most = caps.rows or _ROWS
    shown = _shown(diff)
    tables = diff_tables.others(diff, names, most)
    headline = diff_headline(diff)
    return ComparisonPage(
        title=clean(headline, 200),
        before=clean(diff.before.file, 160),
        after=clean(diff.after.file, 160),
        devices=_devices(diff),
        headline=headline,
        lead=diff_lead(diff, names.after),
        steps=_steps(diff, shown, names),
        figure=_figure(diff, shown, sheet) if shown else None,
        sections=tuple(_sections(diff, shown, names, most)),
        totals=diff_tables.totals(diff),
        tables=tuple(table for table in tables if table.rows),
        unaccounted=signed_bytes(diff.unaccounted) if diff.unaccounted else "",
        version=__version__,
    )


def _devices(diff: Diff) -> str:
    """The devices that are compared; both, where they are not the same."""
    one, other = diff.before.device, diff.after.device
    return f"device {one}" if one == other else f"device {one} → device {other}"


def _shown(diff: Diff) -> tuple[SiteChange, ...]:
    """The sites with a bar: what changed in the program first, as in the tables."""
    return tuple(row for row in diff.sites if row.change)[:STEPS]


def _steps(diff: Diff, shown: Sequence[SiteChange], names: FileNames) -> tuple[StepRow, ...]:
    rows = [
        StepRow(
            number,
            _short(row, names),
            why(row),
            signed_bytes(row.change),
            _exact(row.change),
            f"c-{row.category}",
        )
        for number, row in enumerate(shown, 1)
    ]
    if rest := diff.change.allocated - sum(row.change for row in shown):
        rows.append(StepRow(0, EVERYTHING_ELSE, "", signed_bytes(rest), _exact(rest), "s-other"))
    return tuple(rows)


def _short(row: SiteChange, names: FileNames) -> str:
    """The site with the bare name of its file: it stands beside the figure, and in full in the tables."""
    if row.site is None:
        return place_of(_as_use(row), names.after).text
    return place(row.site, lambda path: names.after(path).replace("\\", "/").rpartition("/")[2])


def _figure(diff: Diff, shown: Sequence[SiteChange], sheet: StyleSheet) -> Markup:
    bars = [Bar(str(number), row.change) for number, row in enumerate(shown, 1)]
    if rest := diff.change.allocated - sum(row.change for row in shown):
        bars.append(Bar("else", rest))
    return waterfall(diff.before.totals.allocated, bars, diff.after.totals.allocated, sheet)


def _sections(diff: Diff, shown: Sequence[SiteChange], names: FileNames, most: int) -> list[LineSection]:
    numbers = {id(row): number for number, row in enumerate(shown, 1)}
    kinds = [("changed", WHAT_CHANGED, diff_tables.of_program(diff))]
    kinds += [(f"explained-{at}", *one) for at, one in enumerate(diff_tables.explained(diff))]
    found = []
    for name, title, rows in kinds:
        if rows:
            lines = tuple(
                _line(row, numbers.get(id(row), 0), names, at < _STACKS) for at, row in enumerate(rows[:most])
            )
            short = f"{title.partition(',')[0]} ({len(rows):,})"
            found.append(LineSection(name, short, title, lines, max(0, len(rows) - most)))
    return found


def _line(row: SiteChange, number: int, names: FileNames, has_stack: bool) -> LineRow:
    old = row.old_site if row.matched in (MOVED, RENAMED) else None
    return LineRow(
        number=number,
        place=place_of(_as_use(row), names.after),
        old=f"{names.before(old.file)}:{old.line} {clean(old.function, 80)}" if old else "",
        old_full=f"{clean(old.file, 400)}:{old.line}" if old else "",
        category=row.category,
        why=why(row),
        before=row.before,
        after=row.after,
        change=row.change,
        signed=signed_bytes(row.change),
        exact=_exact(row.change),
        stack=tuple(clean(frame, 200) for frame in row.stack[:_FRAMES]) if has_stack else (),
    )


def _as_use(row: SiteChange) -> SiteUse:
    return SiteUse(row.site, row.caller, row.label, row.after, row.after_blocks)


def _exact(count: int) -> str:
    return plural(count, "byte").replace("-", "−") if count <= 0 else f"+{plural(count, 'byte')}"
