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
MOST_RANKS = 1_000_000
"""A job of more is not believed: nobody is told of which of them there is no file."""
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
    first, sites = _first(ranks), _Sites(ranks)
    known = {number(one) for one in ranks}
    sizes = [one.world_size or 0 for one in ranks] + [_last_named(ranks) + 1]
    size = max((one for one in sizes if one <= MOST_RANKS), default=0)
    return Ranks(
        ranks=ranks,
        first=first,
        followed=tuple(number(one) for one in ranks if first not in (None, number(one)) and one.reason in _FOLLOWERS),
        missing=tuple(one for one in range(size) if one not in known),
        repeated=repeated,
        outliers=_outliers(ranks, sites),
        sites=_spread(ranks, sites),
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


class _Sites:
    """The sites of all ranks, each a number; a thousand ranks have the same ones, and comparing lines is slow."""

    def __init__(self, ranks: Sequence[Digest]) -> None:
        numbers: dict[Key, int] = {}
        self.of_rank: list[dict[int, int]] = []
        for one in ranks:
            found: dict[int, int] = {}
            for site in one.sites:
                at = numbers.setdefault((site.site, site.caller, site.label), len(numbers))
                found[at] = found.get(at, 0) + site.bytes
            self.of_rank.append(found)
        self.keys = list(numbers)


def _outliers(ranks: Sequence[Digest], sites: _Sites) -> tuple[Outlier, ...]:
    known = [(one, one.peak_allocated, mine) for one, mine in zip(ranks, sites.of_rank, strict=True)]
    peaks = [peak for _, peak, _ in known if peak is not None]
    if len(peaks) < 2:
        return ()
    middle = median_low(peaks)
    usual = median_low([abs(peak - middle) for peak in peaks])
    least = max(LEAST_SHARE * middle, DEVIATIONS * usual)
    medians = _medians([mine for _, peak, mine in known if peak is not None])
    categories = _medians([one.categories for one, peak, _ in known if peak is not None])
    found = []
    for one, peak, mine in known:
        if peak is not None and abs(peak - middle) > least:
            rows = [
                OutlierSite(*sites.keys[at], mine.get(at, 0), middling)
                for at, middling in medians.items()
                if mine.get(at, 0) != middling
            ]
            rows.sort(key=lambda row: (-abs(row.bytes - row.median), str(row.site), row.label or ""))
            change = {name: one.categories.get(name, 0) - count for name, count in categories.items()}
            changed = {name: count for name, count in change.items() if count}
            found.append(Outlier(number(one), peak - middle, tuple(rows[:MOST_SITES]), changed))
    return tuple(sorted(found, key=lambda one: (-abs(one.bytes), one.rank)))


def _gathered(columns: Sequence[Mapping[_Name, int]]) -> dict[_Name, list[int]]:
    """What stands in the columns by name; where a column has no such name, nothing."""
    found: dict[_Name, list[int]] = {}
    for column in columns:
        for name, count in column.items():
            found.setdefault(name, []).append(count)
    return found


def _medians(columns: Sequence[Mapping[_Name, int]]) -> dict[_Name, int]:
    return {name: _median(values, len(columns)) for name, values in _gathered(columns).items()}


def _median(values: Sequence[int], count: int) -> int:
    """The lower median of `count` numbers, of which `values` are told and the others are 0; none is negative."""
    zeros, at = count - len(values), (count - 1) // 2
    return 0 if at < zeros else sorted(values)[at - zeros]


def _spread(ranks: Sequence[Digest], sites: _Sites) -> tuple[SiteSpread, ...]:
    most: dict[int, tuple[int, int]] = {}  # of each site, with the first rank that has it
    for one, mine in zip(ranks, sites.of_rank, strict=True):
        for at, count in mine.items():
            if at not in most or count > most[at][0]:
                most[at] = count, number(one)
    rows = []
    for at, values in _gathered(sites.of_rank).items():
        least = min(values) if len(values) == len(ranks) else 0
        rows.append(SiteSpread(*sites.keys[at], least, _median(values, len(ranks)), *most[at]))
    rows.sort(key=lambda row: (-row.max, str(row.site), row.label or ""))
    return tuple(rows[:MOST_SITES])
