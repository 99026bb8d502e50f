"""The sites of two recordings side by side: what each changed by, and why."""

from __future__ import annotations

from collections.abc import Mapping

from oomscope.analysis.compare.live_sites import NOT_THERE, LiveSite, SiteKey
from oomscope.analysis.compare.matching import GONE, KINDS, NEW, LineMatches, how_matched
from oomscope.analysis.compare.pairing import Paired, pair
from oomscope.analysis.compare.records import (
    BLOCKS,
    INSTANT,
    RATIO,
    ROUNDING,
    SIZES,
    UNCHANGED,
    Scaling,
    SiteChange,
)
from oomscope.analysis.compare.scaling import find_factor
from oomscope.analysis.records import Location

UNACCOUNTED = "unaccounted"
LEAST_REST = 0.02
"""Of what a site holds; a smaller rest is not what its change is about."""
_EXPLAINS = 0.8
"""Of the bytes of a category, beside those that stayed as they were, for the factor to be said of it."""
_UNIFORM = 0.05
"""Of what the factor explains; a larger rest is a change of its own."""
SMALL = 1000
"""One in so many bytes; a smaller change stands behind those that the factor explains."""

Both = tuple[SiteKey | None, SiteKey | None]


def change_sites(
    before: Mapping[SiteKey, LiveSite], after: Mapping[SiteKey, LiveSite], matches: LineMatches, unaccounted: int
) -> tuple[tuple[SiteChange, ...], Scaling | None]:
    """The change of every site of either recording, and the factor that explains most of it.

    Args:
        before: the sites of one recording.
        after: of the other.
        matches: which line is which.
        unaccounted: the change of allocated bytes that no block explains; it has a row of its own.
    """
    pairs = _side_by_side(before, after, matches)
    found = [(both, _of(before, both[0]), _of(after, both[1])) for both in pairs]
    factor = find_factor((one.blocks, other.blocks) for _, one, other in found)
    rows, paired = [], []
    for both, one, other in found:
        if one.bytes or other.bytes or one.blocks.size.size or other.blocks.size.size:
            paired.append(pair(one.blocks, other.blocks, factor))
            rows.append(_row(both, one, other, paired[-1], factor))
    scaling = None if factor is None else _scaling(rows, paired, factor)
    if unaccounted:
        rows.append(SiteChange(None, None, UNACCOUNTED, 0, unaccounted, 0, 0, "unknown", "same", SIZES))
    small = max(sum(row.before for row in rows), sum(row.after for row in rows)) // SMALL
    return tuple(sorted(rows, key=lambda row: _rank(row, small))), scaling


def _of(sites: Mapping[SiteKey, LiveSite], key: SiteKey | None) -> LiveSite:
    return NOT_THERE if key is None else sites[key]


def _side_by_side(
    before: Mapping[SiteKey, LiveSite], after: Mapping[SiteKey, LiveSite], matches: LineMatches
) -> list[Both]:
    """Each site of either recording, with its counterpart where it has one."""
    found: list[Both] = []
    taken = set()
    for key in before:
        site, caller, label = key
        there = (_there(site, matches), _there(caller, matches), label)
        known = there in after and (site is None) == (there[0] is None) and (caller is None) == (there[1] is None)
        found.append((key, there if known else None))
        if known:
            taken.add(there)
    return found + [(None, key) for key in after if key not in taken]


def _there(location: Location | None, matches: LineMatches) -> Location | None:
    return None if location is None else matches.after_of.get(location)


def _row(both: Both, before: LiveSite, after: LiveSite, paired: Paired, factor: float | None) -> SiteChange:
    ours, theirs = both
    here = theirs or ours
    assert here is not None
    matched = _matched(ours, theirs)
    reason = _reason(matched, before, after, paired)
    old = ours if ours is not None and theirs is not None else (None, None)
    return SiteChange(
        site=here[0],
        caller=here[1],
        label=here[2],
        before=before.bytes,
        after=after.bytes,
        before_blocks=len(before.blocks.size),
        after_blocks=len(after.blocks.size),
        category=(after if after.bytes >= before.bytes else before).category,
        matched=matched,
        reason=reason,
        by_ratio=paired.by_ratio,
        by_square=paired.by_square,
        by_rounding=paired.by_rounding,
        factor=_factor(paired, factor),
        old_site=old[0] if old[0] != here[0] else None,
        old_caller=old[1] if old[1] != here[1] else None,
        stack=(after.stack if after.bytes >= before.bytes else before.stack) or after.stack or before.stack,
    )


def _matched(ours: SiteKey | None, theirs: SiteKey | None) -> str:
    if ours is None:
        return NEW
    if theirs is None:
        return GONE
    return max((how_matched(one, other) for one, other in zip(ours[:2], theirs[:2], strict=True)), key=KINDS.index)


def _factor(paired: Paired, factor: float | None) -> float | None:
    """The factor of most of what it explains of a site; None where it explains nothing."""
    if factor is None or not (paired.by_ratio or paired.by_square):
        return None
    return factor if abs(paired.by_ratio) >= abs(paired.by_square) else factor**2


def _reason(matched: str, before: LiveSite, after: LiveSite, paired: Paired) -> str:
    """What most of the change is: the first that holds of what a reader wants to know first."""
    change = after.bytes - before.bytes
    scaled = paired.by_ratio + paired.by_square
    rest = change - scaled - paired.by_rounding
    both = before.bytes + after.bytes
    blocks = len(before.blocks.size), len(after.blocks.size)
    fewer, more = (before, after) if blocks[0] < blocks[1] else (after, before)
    as_many = blocks[0] == blocks[1]
    only_later = not as_many and max(blocks) <= fewer.most <= more.most
    unpaired = both - paired.explained
    if not unpaired or (unpaired <= LEAST_REST * both and (as_many or only_later)):
        if not change:
            return UNCHANGED if as_many else INSTANT
        if abs(rest) <= max(abs(scaled), abs(paired.by_rounding)):
            return RATIO if abs(scaled) >= abs(paired.by_rounding) else ROUNDING
    if matched in (NEW, GONE):
        return matched
    if only_later:
        return RATIO if abs(scaled) > abs(rest) else INSTANT
    return SIZES if as_many else BLOCKS


def _scaling(rows: list[SiteChange], paired: list[Paired], factor: float) -> Scaling | None:
    """What the factor explains; None where it explains no category."""
    scaled: dict[str, int] = {}
    all_bytes: dict[str, int] = {}
    for row, one in zip(rows, paired, strict=True):
        mine = one.scaled + one.squared
        scaled[row.category] = scaled.get(row.category, 0) + mine
        other = row.before + row.after - one.same if row.is_of_program else mine
        all_bytes[row.category] = all_bytes.get(row.category, 0) + other
    largest = sorted(scaled.items(), key=lambda item: (-item[1], item[0]))
    category = {name: factor for name, count in largest if count and count >= _EXPLAINS * all_bytes[name]}
    squared = sum(row.by_square for row in rows)
    explained = sum(row.by_ratio for row in rows) + squared
    rest = sum(abs(row.rest) for row in rows if row.is_of_program)
    return Scaling(
        factor=factor,
        category=category,
        uniform=bool(category) and rest <= _UNIFORM * abs(explained),
        explained=explained,
        squared=squared,
        sites=sum(bool(row.by_ratio or row.by_square) for row in rows),
    )


def _rank(row: SiteChange, small: int) -> tuple[int, int, int, str, int]:
    """What changed in the program first, by what is not explained; then the rest, by its change."""
    amount = abs(row.rest) if row.is_of_program else abs(row.change)
    group = 2 if row.reason == UNCHANGED else 0 if row.is_of_program and amount > small else 1
    where = row.site
    line = where.line if where else 0
    return group, -amount, -max(row.before, row.after), row.label or (where.file if where else ""), line
