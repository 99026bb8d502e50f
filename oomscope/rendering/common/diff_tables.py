"""The tables of a comparison: the same rows in every format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from oomscope.analysis.compare.matching import MOVED, RENAMED
from oomscope.analysis.compare.records import INSTANT, RATIO, ROUNDING, Diff, NamedChange, SiteChange, ValueChange
from oomscope.frozen import frozen
from oomscope.rendering.common.tables import Table
from oomscope.units import format_bytes, format_count
from oomscope.wording.clean import clean
from oomscope.wording.diff import (
    INSTANT_TITLE,
    ROUNDING_TITLE,
    WHAT_CHANGED,
    place_words,
    signed_bytes,
    site_words,
    times,
    why,
)
from oomscope.wording.labels import CATEGORY_LABELS, PHASE_LABELS, SITE_LABELS, label
from oomscope.wording.paths import Shorten, shortener_of
from oomscope.wording.places import place

UNKNOWN = "unknown"
_FREE_LABELS = {
    "inactive": "free inside PyTorch",
    "releasable": "of it releasable",
    "walled": "of it walled",
    "stranded": "of it stranded",
    "largest_inactive": "largest hole",
}


@frozen
class FileNames:
    """How files are called: those of AFTER, and those of BEFORE where they were others."""

    after: Shorten
    before: Shorten


def names_of(diff: Diff) -> FileNames:
    """Short names for all files of `diff`."""
    here = [where.file for row in diff.sites for where in (row.site, row.caller) if where]
    old = [where.file for row in diff.sites for where in (row.old_site, row.old_caller) if where]
    return FileNames(shortener_of(here), shortener_of(old or here))


def totals(diff: Diff) -> Table:
    """Both sides in figures."""
    before, after = diff.before.totals, diff.after.totals
    rows = [
        ("allocated", before.allocated, after.allocated),
        ("active", before.active, after.active),
        ("reserved", before.reserved, after.reserved),
    ]
    if before.active == before.allocated and after.active == after.allocated:
        del rows[1]
    shown = [(name, format_bytes(was), format_bytes(now), signed_bytes(now - was)) for name, was, now in rows]
    shown += [
        (_FREE_LABELS[name], "", "", signed_bytes(change))
        for name in _FREE_LABELS
        if (change := diff.fragmentation.get(name))
    ]
    shown += [(f"peak {name}", "", "", signed_bytes(change)) for name, change in (diff.peak or {}).items() if change]
    passes = diff.before.passes, diff.after.passes
    shown.append(("passes", _count(passes[0]), _count(passes[1]), ""))
    return Table("Totals", ("", "before", "after", "change"), tuple(shown), frozenset({1, 2, 3}))


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else format_count(number)


def sites(rows: Sequence[SiteChange], names: FileNames, title: str, most: int) -> Table:
    """Sites with their change and the reason for it."""
    shown = tuple(
        (
            signed_bytes(row.change),
            format_bytes(row.before),
            format_bytes(row.after),
            why(row),
            place_words(row, names.after, names.before),
        )
        for row in rows[:most]
    )
    headings = ("change", "before", "after", "why", "site ← caller")
    return Table(title, headings, shown, frozenset({0, 1, 2}), max(0, len(rows) - most))


def of_program(diff: Diff) -> tuple[SiteChange, ...]:
    """The rows that no factor, rounding or choice of instants explains, largest first."""
    return tuple(row for row in diff.sites if row.is_of_program)


def explained(diff: Diff) -> list[tuple[str, tuple[SiteChange, ...]]]:
    """The other rows that changed, by what explains them, under its title."""
    factor = "" if diff.scaling is None else times(diff.scaling.factor)
    titles = ((RATIO, f"Explained by {factor}"), (INSTANT, INSTANT_TITLE), (ROUNDING, ROUNDING_TITLE))
    return [(title, tuple(row for row in diff.sites if row.reason == reason)) for reason, title in titles]


def shares(changes: Mapping[str, int], labels: Mapping[str, str], title: str, heading: str) -> Table:
    """Categories or phases, most changed first."""
    found = sorted(((count, name) for name, count in changes.items() if count), key=lambda one: -abs(one[0]))
    rows = tuple((label(name, labels), signed_bytes(count)) for count, name in found)
    return Table(title, (heading, "change"), rows, frozenset({1}))


def categories(diff: Diff) -> Table:
    """The change by category."""
    return shares(diff.categories, CATEGORY_LABELS, "By category", "category")


def phases(diff: Diff) -> Table:
    """The change by the phase that allocated."""
    return shares(diff.phases, PHASE_LABELS, "By phase", "phase")


def named(changes: Iterable[NamedChange] | None, title: str, most: int) -> Table:
    """Holders or tensors that changed; empty where not both recordings know them."""
    found = [row for row in changes or () if row.change]
    rows = tuple(
        (signed_bytes(row.change), format_bytes(row.before), format_bytes(row.after), clean(row.name, 160) or "no name")
        for row in found[:most]
    )
    return Table(title, ("change", "before", "after", "name"), rows, frozenset({0, 1, 2}), max(0, len(found) - most))


def growth(diff: Diff, names: FileNames, most: int) -> Table:
    """What each line leaves behind every pass, where that differs."""
    found = [row for row in diff.growth if row.before != row.after]
    rows = tuple(
        (
            "no growth" if row.before is None else format_bytes(row.before),
            "no growth" if row.after is None else format_bytes(row.after),
            place(row.site, names.after) if row.site else label(row.label or "only_torch", SITE_LABELS),
        )
        for row in found[:most]
    )
    more = max(0, len(found) - most)
    return Table("Left behind every pass", ("before", "after", "site"), rows, frozenset({0, 1}), more)


def values(changes: Sequence[ValueChange], title: str, most: int) -> Table:
    """Settings or versions that differ."""
    rows = tuple((clean(row.name, 80), _value(row.before), _value(row.after)) for row in changes[:most])
    return Table(title, ("name", "before", "after"), rows, more=max(0, len(changes) - most))


def _value(value: str | None) -> str:
    return "not recorded" if value is None else clean(value, 120) or "not set"


def places(diff: Diff, names: FileNames, most: int) -> Table:
    """Which lines are called otherwise in BEFORE."""
    found = [row for row in diff.sites if row.matched in (MOVED, RENAMED)]
    rows = tuple(
        (row.matched, place(old, names.before), site_words(row, names.after))
        for row in found[:most]
        if (old := row.old_site or row.site) is not None
    )
    more = max(0, len(found) - most)
    return Table("The same line, elsewhere", ("how", "before", "after"), rows, more=more)


def others(diff: Diff, names: FileNames, most: int) -> list[Table]:
    """All but the totals and the sites, in the order in which they are asked for; those without rows are empty."""
    return [
        categories(diff),
        phases(diff),
        named(diff.holders, "Holders, at the dump", most),
        named(diff.names, "Tensors by name, at the dump", most),
        growth(diff, names, most),
        values(diff.settings, "Settings", most),
        values(diff.versions, "Versions", most),
        places(diff, names, most),
    ]


def all_tables(diff: Diff, names: FileNames, most: int) -> list[Table]:
    """All but the totals: sites, then the others."""
    return [
        sites(of_program(diff), names, WHAT_CHANGED, most),
        *(sites(rows, names, title, most) for title, rows in explained(diff)),
        *others(diff, names, most),
    ]
