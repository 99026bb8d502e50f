"""The ranks of one job side by side: who failed first, who holds more than the others, and where."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median_low
from typing import TypeAlias, TypeVar

from oomscope.analysis.compare.digest import Digest, merged
from oomscope.analysis.records import Location
from oomscope.frozen import frozen

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


@frozen
class OutlierSite:
    """What a line holds on an outlier, and the median of all ranks."""

    site: Location | None
    caller: Location | None
    label: str | None
    bytes: int
    median: int


@frozen
class Outlier:
    """A rank whose peak departs from the others: `bytes` from the median, `sites` by how much they do.

    Each line has a median of its own, so the lines need not sum to `bytes`.
    """

    rank: int
    bytes: int
    sites: tuple[OutlierSite, ...]
    categories: Mapping[str, int]


@frozen
class SiteSpread:
    """A line over the ranks that know their peak, at the peak of each; where none does, over all, as their files end.

    What a digest leaves out as too small counts as 0.
    """

    site: Location | None
    caller: Location | None
    label: str | None
    min: int
    median: int
    max: int
    max_rank: int


@frozen
class CategorySpread:
    """A category over the same ranks as the lines; `max_rank`: the first that has the most."""

    name: str
    min: int
    median: int
    max: int
    max_rank: int


@frozen
class PeakSpread:
    """The peaks of all ranks that know theirs; one that is more than `apart` from the median is an outlier."""

    min: int
    min_rank: int
    median: int
    max: int
    max_rank: int
    apart: int

    @property
    def alike(self) -> bool:
        """Whether no peak departs from the median by more than `LEAST_SHARE` of it."""
        return max(self.max - self.median, self.median - self.min) <= LEAST_SHARE * self.median


@frozen
class SameEnd:
    """Ranks that ended alike: with one fingerprint where a request failed, else for one `reason` (None: not known)."""

    cause: str | None
    headline: str | None
    reason: str | None
    ranks: tuple[int, ...]


@frozen
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
        categories: largest maximum first.
        peaks: None where no rank knows its peak.
        ends: failures first, those of most ranks first; a headline is that of the first of its ranks.
    """

    ranks: tuple[Digest, ...]
    first: int | None
    followed: tuple[int, ...]
    missing: tuple[int, ...]
    repeated: tuple[str, ...]
    outliers: tuple[Outlier, ...]
    sites: tuple[SiteSpread, ...]
    categories: tuple[CategorySpread, ...]
    peaks: PeakSpread | None
    ends: tuple[SameEnd, ...]


def compare_ranks(digests: Iterable[Digest]) -> Ranks:
    """The ranks of `digests`, which may have several files of one rank."""
    ranks, repeated = _one_each(_numbered(merged(digests)))
    first, sites, peaks = _first(ranks), _Sites(ranks), _peaks(ranks)
    known = {number(one) for one in ranks}
    sizes = [one.world_size or 0 for one in ranks] + [_last_named(ranks) + 1]
    size = max((one for one in sizes if one <= MOST_RANKS), default=0)
    return Ranks(
        ranks=ranks,
        first=first,
        followed=tuple(number(one) for one in ranks if first not in (None, number(one)) and one.reason in _FOLLOWERS),
        missing=tuple(one for one in range(size) if one not in known),
        repeated=repeated,
        outliers=_outliers(ranks, sites, peaks),
        sites=_spread(ranks, sites),
        categories=_categories(ranks),
        peaks=peaks,
        ends=_ends(ranks),
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


def _peaks(ranks: Sequence[Digest]) -> PeakSpread | None:
    known = [(one.peak_allocated, number(one)) for one in ranks if one.peak_allocated is not None]
    if not known:
        return None
    peaks = [peak for peak, _ in known]
    middle = median_low(peaks)
    usual = median_low([abs(peak - middle) for peak in peaks])
    (least, least_rank), (most, most_rank) = min(known), max(known, key=lambda one: (one[0], -one[1]))
    apart = max(int(LEAST_SHARE * middle), DEVIATIONS * usual)
    return PeakSpread(least, least_rank, middle, most, most_rank, apart)


def _outliers(ranks: Sequence[Digest], sites: _Sites, peaks: PeakSpread | None) -> tuple[Outlier, ...]:
    if peaks is None:
        return ()
    known = [(one, one.peak_allocated, mine) for one, mine in zip(ranks, sites.of_rank, strict=True)]
    medians = _medians([mine for _, peak, mine in known if peak is not None])
    categories = _medians([one.categories for one, peak, _ in known if peak is not None])
    found = []
    for one, peak, mine in known:
        if peak is not None and abs(peak - peaks.median) > peaks.apart:
            rows = [
                OutlierSite(*sites.keys[at], mine.get(at, 0), middling)
                for at, middling in medians.items()
                if mine.get(at, 0) != middling
            ]
            rows.sort(key=lambda row: (-abs(row.bytes - row.median), str(row.site), row.label or ""))
            change = {name: one.categories.get(name, 0) - count for name, count in categories.items()}
            changed = {name: count for name, count in change.items() if count}
            found.append(Outlier(number(one), peak - peaks.median, tuple(rows[:MOST_SITES]), changed))
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


def _comparable(ranks: Sequence[Digest]) -> frozenset[int]:
    """The ranks whose figures are of one kind of instant: those at their peaks; where no rank knows its peak, all."""
    known = frozenset(number(one) for one in ranks if one.peak_allocated is not None)
    return known or frozenset(map(number, ranks))


def _spread(ranks: Sequence[Digest], sites: _Sites) -> tuple[SiteSpread, ...]:
    chosen = _comparable(ranks)
    columns = [(number(one), mine) for one, mine in zip(ranks, sites.of_rank, strict=True) if number(one) in chosen]
    rows = [SiteSpread(*sites.keys[at], *spread) for at, spread in _spreads(columns).items()]
    rows.sort(key=lambda row: (-row.max, str(row.site), row.label or ""))
    return tuple(rows[:MOST_SITES])


def _categories(ranks: Sequence[Digest]) -> tuple[CategorySpread, ...]:
    chosen = _comparable(ranks)
    columns = [(number(one), one.categories) for one in ranks if number(one) in chosen]
    rows = [CategorySpread(name, *spread) for name, spread in _spreads(columns).items()]
    return tuple(sorted(rows, key=lambda row: (-row.max, row.name)))


def _spreads(columns: Sequence[tuple[int, Mapping[_Name, int]]]) -> dict[_Name, tuple[int, int, int, int]]:
    """Least, median and most of each name over the columns of ranks, and the first rank that has the most."""
    most: dict[_Name, tuple[int, int]] = {}
    for rank, column in columns:
        for name, count in column.items():
            if name not in most or count > most[name][0]:
                most[name] = count, rank
    gathered = _gathered([column for _, column in columns])
    return {
        name: (min(values) if len(values) == len(columns) else 0, _median(values, len(columns)), *most[name])
        for name, values in gathered.items()
    }


def _ends(ranks: Sequence[Digest]) -> tuple[SameEnd, ...]:
    alike: dict[tuple[str, str | None], list[Digest]] = {}
    for one in ranks:
        alike.setdefault(("", one.reason) if one.cause is None else (one.fingerprint, None), []).append(one)
    found = [
        SameEnd(few[0].cause, few[0].headline, few[0].reason, tuple(number(one) for one in few))
        for few in alike.values()
    ]
    return tuple(sorted(found, key=lambda one: (one.cause is None, -len(one.ranks), one.ranks)))
