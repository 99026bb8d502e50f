"""The ranks of one job side by side: who failed first, who holds more than the others, and where."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import TypeAlias, TypeVar

from oomscope.analysis.compare.digest import Digest, merged
from oomscope.analysis.records import Location

LEAST_SHARE = 0.05
"""Of the median; a rank that departs by less is as the others."""
DEVIATIONS = 3
"""So many times the median deviation is more than the ranks differ anyway."""
MOST_SITES = 100
_FOLLOWERS = frozenset({"peers", "exception", "oom"})

_Name = TypeVar("_Name", bound=Hashable)
Key: TypeAlias = tuple[Location | None, Location | None, str | None]


@dataclass(frozen=True, slots=True)
class OutlierSite:
    """What a line holds on an outlier, and the median of all ranks."""

    site: Location | None
    caller: Location | None
    label: str | None
    bytes: int
    median: int


@dataclass(frozen=True, slots=True)
class Outlier:
    """A rank whose peak departs from the others: `bytes` from the median, `sites` by how much they do.

    Each line has a median of its own, so the lines need not sum to `bytes`.
    """

    rank: int
    bytes: int
    sites: tuple[OutlierSite, ...]
    categories: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SiteSpread:
    """A line over all ranks, at the peak of each; what a digest leaves out as too small counts as 0."""

    site: Location | None
    caller: Location | None
    label: str | None
    min: int
    median: int
    max: int
    max_rank: int


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of one job.

    Attributes:
        ranks: one a rank; those whose number nothing tells are counted on in the order of their files.
        first: the rank whose request failed first, by the clock of its host; None where none did.
        followed: those that failed later, or because a peer had.
        missing: ranks of the job of which there is no file.
        repeated: further files of ranks that have one already; the one that failed first, else the last, is shown.
        outliers: largest first.
        sites: largest maximum first.
    """

    ranks: tuple[Digest, ...]
    first: int | None
    followed: tuple[int, ...]
    missing: tuple[int, ...]
    repeated: tuple[str, ...]
    outliers: tuple[Outlier, ...]
    sites: tuple[SiteSpread, ...]


def compare_ranks(digests: Iterable[Digest]) -> Ranks:
    """The ranks of `digests`, which may have several files of one rank."""
    ranks, repeated = _one_each(_numbered(merged(digests)))
    first = _first(ranks)
    known = {number(one) for one in ranks}
    size = max([one.world_size or 0 for one in ranks] + [_last_named(ranks) + 1], default=0)
    return Ranks(
        ranks=ranks,
        first=first,
        followed=tuple(number(one) for one in ranks if first not in (None, number(one)) and one.reason in _FOLLOWERS),
        missing=tuple(one for one in range(size) if one not in known),
        repeated=repeated,
        outliers=_outliers(ranks),
        sites=_spread(ranks),
    )


def number(one: Digest) -> int:
    """The rank of a digest that has one."""
    assert one.rank is not None
    return one.rank


def _last_named(ranks: Sequence[Digest]) -> int:
    return max((number(one) for one in ranks if one.rank_source != "order"), default=-1)


def _numbered(digests: Sequence[Digest]) -> list[Digest]:
    """`digests` with a rank each: where nothing tells it, the next that is free, in the order of the files."""
    taken = {one.rank for one in digests}
    free = (one for one in range(len(digests) + len(taken)) if one not in taken)
    return [one if one.rank is not None else replace(one, rank=next(free), rank_source="order") for one in digests]


def _one_each(digests: Sequence[Digest]) -> tuple[tuple[Digest, ...], tuple[str, ...]]:
    by_rank: dict[int, list[Digest]] = {}
    for one in digests:
        by_rank.setdefault(number(one), []).append(one)
    shown = {rank: min(files, key=_matters) for rank, files in by_rank.items()}
    repeated = tuple(one.file for rank, files in sorted(by_rank.items()) for one in files if one is not shown[rank])
    return tuple(shown[rank] for rank in sorted(shown)), repeated


def _matters(one: Digest) -> tuple[bool, int, str]:
    """Of several files of a rank: its first failure, else the last file."""
    if one.oom_time_us is not None:
        return False, one.oom_time_us, one.file
    return True, -(one.last_time_us or 0), one.file


def _first(ranks: Sequence[Digest]) -> int | None:
    failed = [one for one in ranks if one.oom_time_us is not None]
    return number(min(failed, key=lambda one: (one.oom_time_us or 0, number(one)))) if failed else None


def _sites_of(one: Digest) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for site in one.sites:
        key = site.site, site.caller, site.label
        found[key] = found.get(key, 0) + site.bytes
    return found


def _outliers(ranks: Sequence[Digest]) -> tuple[Outlier, ...]:
    known = [(one, one.peak_allocated) for one in ranks if one.peak_allocated is not None]
    if len(known) < 2:
        return ()
    middle = median_low([peak for _, peak in known])
    usual = median_low([abs(peak - middle) for _, peak in known])
    least = max(LEAST_SHARE * middle, DEVIATIONS * usual)
    sites = [_sites_of(one) for one, _ in known]
    medians = _medians(sites)
    categories = _medians([dict(one.categories) for one, _ in known])
    found = []
    for (one, peak), mine in zip(known, sites, strict=True):
        if abs(peak - middle) > least:
            rows = [OutlierSite(*key, mine.get(key, 0), usual_) for key, usual_ in medians.items()]
            rows = [row for row in rows if row.bytes != row.median]
            rows.sort(key=lambda row: (-abs(row.bytes - row.median), str(row.site), row.label or ""))
            change = {name: one.categories.get(name, 0) - count for name, count in categories.items()}
            changed = {name: count for name, count in change.items() if count}
            found.append(Outlier(number(one), peak - middle, tuple(rows[:MOST_SITES]), changed))
    return tuple(sorted(found, key=lambda one: (-abs(one.bytes), one.rank)))


def _medians(columns: Sequence[Mapping[_Name, int]]) -> dict[_Name, int]:
    names = dict.fromkeys(name for column in columns for name in column)
    return {name: median_low([column.get(name, 0) for column in columns]) for name in names}


def _spread(ranks: Sequence[Digest]) -> tuple[SiteSpread, ...]:
    columns = [_sites_of(one) for one in ranks]
    rows = []
    for key in dict.fromkeys(key for column in columns for key in column):
        values = [column.get(key, 0) for column in columns]
        most = max(values)
        rows.append(SiteSpread(*key, min(values), median_low(values), most, number(ranks[values.index(most)])))
    rows.sort(key=lambda row: (-row.max, str(row.site), row.label or ""))
    return tuple(rows[:MOST_SITES])
