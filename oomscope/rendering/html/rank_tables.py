"""The tables of the page of a job's ranks. Cells keep their bytes, for sorting and for all digits on hover."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.compare.digest import Digest
from oomscope.analysis.compare.ranks import CategorySpread, Outlier, OutlierSite, Ranks, SiteSpread, number
from oomscope.frozen import frozen
from oomscope.rendering.html.site_rows import Place, place_of
from oomscope.units import format_count, plural
from oomscope.wording import ranks as words
from oomscope.wording.clean import clean
from oomscope.wording.diff import signed_bytes
from oomscope.wording.labels import CATEGORY_LABELS, label

_DETAILED = 3
"""Outliers whose lines are shown."""
_IN_SHORT = 4
"""Lines on the first screen."""
_LONGEST_PATH = 160

_Row = TypeVar("_Row")


@frozen
class Bytes:
    """Bytes; None: not known."""

    bytes: int | None


@frozen
class Change:
    """Bytes more or less."""

    bytes: int

    @property
    def signed(self) -> str:
        """In three digits."""
        return signed_bytes(self.bytes)

    @property
    def exact(self) -> str:
        """In all digits."""
        return f"{self.bytes:+,} bytes".replace("-", "−")


Cell: TypeAlias = "str | int | Bytes | Change | Place"


@frozen
class Grid:
    """Rows under headings; `right`: columns of numbers; `more`: rows that were left out."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: frozenset[int]
    more: int


@frozen
class Section:
    """A part of the page: what it says, and its tables."""

    id: str
    title: str
    lead: str
    grids: tuple[Grid, ...]


def sections(found: Ranks, bad: Sequence[Mapping[str, str]], most: int) -> tuple[Section, ...]:
    """The parts of the page that have something to say, each table with at most so many rows."""
    parts = (
        _apart(found, most),
        Section("ends", "How the ranks ended", "", (_ends(found, most),)),
        Section("spread", "Imbalance", words.spread_lead(found), (_categories(found, most), _sites(found, most))),
        Section("ranks", "Ranks", words.ORDER_LEAD if _by_order(found) else "", (_ranks(found, most),)),
        Section("missing", "Missing ranks", words.missing_ranges(found.missing), ()),
        Section("files", "Files left out", "", (_bad(bad, most), _repeated(found, most))),
    )
    kept = (Section(one.id, one.title, one.lead, tuple(grid for grid in one.grids if grid.rows)) for one in parts)
    return tuple(one for one in kept if one.grids or (one.id == "missing" and one.lead))


def _grid(
    title: str, headings: Sequence[str], rows: Sequence[_Row], cells: Callable[[_Row], tuple[Cell, ...]], most: int
) -> Grid:
    """A table of the first of `rows` without empty columns; headings with ``>`` before them are those of numbers."""
    shown = [cells(row) for row in rows[:most]]
    there = [at for at in range(len(headings)) if any(row[at] != "" for row in shown)]
    return Grid(
        title,
        tuple(headings[at].removeprefix(">") for at in there),
        tuple(tuple(row[at] for at in there) for row in shown),
        frozenset(column for column, at in enumerate(there) if headings[at].startswith(">")),
        len(rows) - len(shown),
    )


def _place(row: OutlierSite | SiteSpread) -> Place:
    return place_of(SiteUse(row.site, row.caller, row.label, 0, 0), lambda path: clean(path, _LONGEST_PATH))


def _category(name: str) -> str:
    return label(name, CATEGORY_LABELS)


def _holder(row: CategorySpread | SiteSpread) -> str:
    """Which rank has the most."""
    return "all" if row.min == row.max else str(row.max_rank)


def _by_order(found: Ranks) -> bool:
    return any(one.rank_source == "order" for one in found.ranks)


def _apart(found: Ranks, most: int) -> Section:
    by_rank = {number(one): one for one in found.ranks}

    def cells(one: Outlier) -> tuple[Cell, ...]:
        rank = by_rank[one.rank]
        where: Cell = _place(one.sites[0]) if one.sites else ""
        return words.rank_words(rank), Bytes(rank.peak_allocated), Change(one.bytes), where, rank.host or ""

    headings = (">rank", ">peak", ">from median", "most of it at", "host")
    several = len(found.outliers) > 1
    grids = [_grid("All outliers", headings, found.outliers, cells, most)] if several else []
    for one in found.outliers[:_DETAILED]:
        grids += [_outlier_sites(one, most), _outlier_categories(one, most)]
    title = "Outliers" if several or not found.outliers else f"What sets rank {found.outliers[0].rank} apart"
    return Section("outliers", title, words.apart_lead(found), tuple(grids))


def apart_in_short(found: Ranks) -> Grid | None:
    """The first lines of the largest outlier; None where there is none, or it has no lines."""
    if not found.outliers or not found.outliers[0].sites:
        return None
    one = found.outliers[0]
    return _grid(
        f"What sets rank {one.rank} apart",
        (f"what sets rank {one.rank} apart", ">from median"),
        one.sites[:_IN_SHORT],
        lambda row: (_place(row), Change(row.bytes - row.median)),
        _IN_SHORT,
    )


def _outlier_sites(one: Outlier, most: int) -> Grid:
    def cells(row: OutlierSite) -> tuple[Cell, ...]:
        return _place(row), Bytes(row.bytes), Bytes(row.median), Change(row.bytes - row.median)

    headings = ("site", f">rank {one.rank}", ">median", ">from median")
    return _grid(f"Rank {one.rank}, by site", headings, one.sites, cells, most)


def _outlier_categories(one: Outlier, most: int) -> Grid:
    rows = sorted(one.categories.items(), key=lambda row: (-abs(row[1]), row[0]))
    return _grid(
        f"Rank {one.rank}, by category",
        ("category", ">from median"),
        rows,
        lambda row: (_category(row[0]), Change(row[1])),
        most,
    )


def _ends(found: Ranks, most: int) -> Grid:
    return _grid(
        "Ranks that ended alike",
        ("end", "ranks", ">how many"),
        found.ends,
        lambda one: (words.same_end_words(one), words.rank_ranges(one.ranks), len(one.ranks)),
        most,
    )


def _categories(found: Ranks, most: int) -> Grid:
    return _grid(
        "By category",
        ("category", ">least", ">median", ">most", ">on rank"),
        found.categories,
        lambda row: (_category(row.name), Bytes(row.min), Bytes(row.median), Bytes(row.max), _holder(row)),
        most,
    )


def _sites(found: Ranks, most: int) -> Grid:
    return _grid(
        "By site",
        ("site", ">least", ">median", ">most", ">on rank"),
        found.sites,
        lambda row: (_place(row), Bytes(row.min), Bytes(row.median), Bytes(row.max), _holder(row)),
        most,
    )


def _ranks(found: Ranks, most: int) -> Grid:
    apart = {one.rank: one.bytes for one in found.outliers}

    def cells(one: Digest) -> tuple[Cell, ...]:
        change: Cell = Change(apart[number(one)]) if number(one) in apart else ""
        end = ("first: " if number(one) == found.first else "") + words.end_words(one)
        sizes = Bytes(one.peak_allocated), Bytes(one.peak_reserved)
        return words.rank_words(one), *sizes, change, end, one.host or "", one.file

    rows = sorted(found.ranks, key=lambda one: (number(one) != found.first, -abs(apart.get(number(one), 0))))
    headings = (">rank", ">peak", ">peak reserved", ">from median", "end", "host", "file")
    return _grid("Ranks", headings, rows, cells, most)


def _bad(bad: Sequence[Mapping[str, str]], most: int) -> Grid:
    title = f"{plural(len(bad), 'file')} could not be read"
    return _grid(title, ("file", "why"), bad, lambda one: (one["file"], one["error"]), most)


def _repeated(found: Ranks, most: int) -> Grid:
    title = f"{format_count(len(found.repeated))} more of ranks that have one already"
    return _grid(title, ("file",), found.repeated, lambda file: (file,), most)
