"""A budget, and what of it a recording breaks: figures against limits, and against a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from oomscope.analysis.compare.figures import SMALL, Figures, SiteFigure
from oomscope.analysis.compare.matching import match_places
from oomscope.analysis.whatif.changes import Site
from oomscope.frozen import frozen
from oomscope.model import Frame

PEAK, RESERVED, FRAGMENTATION, GROWTH = "peak_allocated", "peak_reserved", "fragmentation", "growth_per_pass"
SITE, CATEGORY = "site", "category"
BUDGETS = (PEAK, RESERVED, FRAGMENTATION, GROWTH, SITE, CATEGORY)
MOST_BLAMED = 5


@frozen
class Budget:
    """What is allowed, in bytes; None: nothing is said of it.

    Attributes:
        peak, reserved: of the whole recording.
        fragmentation: stranded bytes at the peak, or as a share of the peak of reserved bytes (`fragmentation_share`).
        growth: of one pass.
        sites: of all lines that are at a place.
        categories: by slug.
        baseline: figures that may be exceeded by no more than the share `tolerance`.
    """

    peak: int | None = None
    reserved: int | None = None
    fragmentation: int | None = None
    fragmentation_share: float | None = None
    growth: int | None = None
    sites: tuple[tuple[Site, int], ...] = ()
    categories: Mapping[str, int] = field(default_factory=dict)
    baseline: Figures | None = None
    tolerance: float = 0.02


@frozen
class Checked:
    """One figure against its limit.

    Attributes:
        budget: one of `BUDGETS`.
        name: the site as it was written, or the category; None for figures of the whole.
        limit: what is allowed.
        found: what there is; None where the recording cannot tell.
        baseline: what the limit was made from; None for a limit of the user's own.
        by: who it is, largest first; against a baseline by how much each grew.
    """

    budget: str
    limit: int
    found: int | None
    name: str | None = None
    baseline: int | None = None
    by: tuple[SiteFigure, ...] = ()

    @property
    def ok(self) -> bool | None:
        """Whether it holds; None where that cannot be told."""
        return None if self.found is None else self.found <= self.limit


@frozen
class CheckResult:
    """All figures that were asked about. `complete`: whether no higher peak can have been missed."""

    checked: tuple[Checked, ...]
    complete: bool

    @property
    def broken(self) -> tuple[Checked, ...]:
        """Those that exceed their limit."""
        return tuple(one for one in self.checked if one.ok is False)

    @property
    def unknown(self) -> tuple[Checked, ...]:
        """Those that the recording cannot tell."""
        return tuple(one for one in self.checked if one.ok is None)

    @property
    def ok(self) -> bool:
        """Whether all hold, and are known to."""
        return not self.broken and not self.unknown


def check(found: Figures, budget: Budget) -> CheckResult:
    """`found` against `budget`."""
    grown = _grown(found, budget.baseline) if budget.baseline is not None else ()
    checked = [*_limits(found, budget)]
    if budget.baseline is not None:
        checked += _against(found, budget.baseline, budget.tolerance, grown)
    return CheckResult(tuple(checked), found.complete)


def _limits(found: Figures, budget: Budget) -> Iterator[Checked]:
    largest = found.sites[:MOST_BLAMED]
    if budget.peak is not None:
        yield Checked(PEAK, budget.peak, found.peak_allocated, by=largest)
    if budget.reserved is not None:
        yield Checked(RESERVED, budget.reserved, found.peak_reserved, by=largest)
    pins = found.pins[:MOST_BLAMED]
    if budget.fragmentation is not None:
        yield Checked(FRAGMENTATION, budget.fragmentation, found.fragmentation, by=pins)
    if budget.fragmentation_share is not None:
        limit = int(budget.fragmentation_share * (found.peak_reserved or 0))
        yield Checked(FRAGMENTATION, limit, found.fragmentation, by=pins)
    if budget.growth is not None:
        yield Checked(GROWTH, budget.growth, found.growth_per_pass, by=found.growing[:MOST_BLAMED])
    known = found.peak_allocated is not None
    for site, limit in budget.sites:
        at = [one for one in found.sites if _is_at(one, site)]
        yield Checked(SITE, limit, _sum(at) if known else None, site.text, by=tuple(at[:MOST_BLAMED]))
    for name, limit in budget.categories.items():
        mine = tuple(one for one in found.sites if one.category == name)[:MOST_BLAMED]
        yield Checked(CATEGORY, limit, found.categories.get(name, 0) if known else None, name, by=mine)


def _is_at(one: SiteFigure, site: Site) -> bool:
    """Whether the line, or the caller of it, is at the place."""
    frames = [Frame(where.file, where.line, where.function) for where in (one.site, one.caller) if where]
    return any(map(site.matches, frames))


def _sum(found: Iterable[SiteFigure]) -> int:
    return sum(one.bytes for one in found)


def _against(
    found: Figures, baseline: Figures, tolerance: float, grown: tuple[tuple[SiteFigure, int], ...]
) -> Iterator[Checked]:
    """The figures of the whole, then categories and sites that grew by more than the tolerance of the whole peak."""
    more = tuple(one for one, _ in grown)
    blamed = more[:MOST_BLAMED]
    rose = {
        PEAK: blamed,
        RESERVED: blamed,
        FRAGMENTATION: found.pins[:MOST_BLAMED],
        GROWTH: found.growing[:MOST_BLAMED],
    }
    for name, by in rose.items():
        was = getattr(baseline, name)
        if was is not None:
            # What lies about in holes is luck to some degree: a share of all that is reserved is let pass.
            extra = int(tolerance * (baseline.peak_reserved or 0)) if name == FRAGMENTATION else 0
            yield Checked(name, _with(was, tolerance) + extra, getattr(found, name), baseline=was, by=by)
    worth = max(int(tolerance * (baseline.peak_allocated or 0)), (baseline.peak_allocated or 0) // SMALL)
    for name, now in found.categories.items():
        was = baseline.categories.get(name, 0)
        limit = max(_with(was, tolerance), was + worth)
        if now > limit:
            mine = tuple(one for one in more if one.category == name)[:MOST_BLAMED]
            yield Checked(CATEGORY, limit, now, name, was, mine)
    for one, was in grown:
        limit = max(_with(was, tolerance), was + worth)
        if was + one.bytes > limit:
            yield Checked(SITE, limit, was + one.bytes, None, was, (one,))


def _with(count: int, tolerance: float) -> int:
    return count + int(count * tolerance)


def _grown(found: Figures, baseline: Figures) -> tuple[tuple[SiteFigure, int], ...]:
    """The sites that hold more than in the baseline, with what they held there; `bytes` are those they hold more."""
    before_of = match_places(baseline.places, found.places).before_of
    was: dict[object, int] = {}
    for one in baseline.sites:
        key = one.site, one.caller, one.label
        was[key] = was.get(key, 0) + one.bytes
    rows = []
    for one in found.sites:
        site = None if one.site is None else before_of.get(one.site, one.site)
        caller = None if one.caller is None else before_of.get(one.caller, one.caller)
        before = was.get((site, caller, one.label), 0)
        if one.bytes > before:
            rows.append((SiteFigure(one.site, one.caller, one.label, one.bytes - before, one.category), before))
    return tuple(sorted(rows, key=lambda row: -row[0].bytes))
