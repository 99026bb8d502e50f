"""Seeded changes of one program, against the truths that were written before."""

from __future__ import annotations

from functools import cache

import pytest

from oomscope.analysis.compare.diff import compare
from oomscope.analysis.compare.records import Diff, SiteChange
from tests.compare.seeded import ALL_KINDS, PLAIN, TRUTHS, Code, Truth, Variant

NEW_LINE = "a new line that keeps"


def sides(name: str) -> tuple[Variant, Variant]:
    if name == NEW_LINE:
        return Variant(logs=False), Variant(logs=False, kept=8)
    return PLAIN, TRUTHS[name].variant


@cache
def diff(name: str) -> Diff:
    before, after = sides(name)
    return compare(before.snapshot(), after.snapshot(), at=TRUTHS[name].at)


def site(code: Code, kind: str) -> tuple[str, int, str]:
    inner = next(frame for frame in code.stack(kind) if "/torch/" not in frame["filename"])
    return inner["filename"], inner["line"], inner["name"]


def where(row: SiteChange) -> tuple[str, int, str] | None:
    return (row.site.file, row.site.line, row.site.function) if row.site else None


@pytest.mark.parametrize("name", TRUTHS)
def test_every_line_is_recognised_as_what_it_is(name: str):
    truth, (before, after) = TRUTHS[name], sides(name)
    rows = {where(row): row for row in diff(name).sites}
    seen = set()
    for kind in ALL_KINDS:
        row = rows.get(site((before if kind in truth.gone else after).code, kind))
        if row is not None:
            seen.add(kind)
            assert row.matched == ("gone" if kind in truth.gone else truth.matched.get(kind, "same")), kind
    assert seen >= {"norm1", "norm2", "up", "gelu", "down", "head", "loss", "load", "state"}
    others = [row for row in rows.values() if row.matched in ("new", "gone")]
    assert len(others) == len(truth.new) + len(truth.gone)


@pytest.mark.parametrize("name", TRUTHS)
def test_what_was_seeded_is_the_first_row_to_the_byte(name: str):
    truth, (before, after) = TRUTHS[name], sides(name)
    first = diff(name).sites[0]
    if truth.first is None:
        assert not first.is_of_program
        return
    kind, change = truth.first
    assert where(first) == site((before if kind in truth.gone else after).code, kind)
    assert first.is_of_program
    assert first.rest == change
    others = [row for row in diff(name).sites[1:] if row.is_of_program]
    assert others == []


@pytest.mark.parametrize("name", TRUTHS)
def test_one_factor_is_said_where_there_is_one(name: str):
    truth, found = TRUTHS[name], diff(name)
    if truth.factor is None:
        assert found.scaling is None
        return
    assert found.scaling is not None
    assert found.scaling.factor == pytest.approx(truth.factor, rel=0.01)
    # What the layers make counts as temporary here, for there is no backward pass; but for what is beside a leak.
    assert set(found.scaling.category) & {"temporary", "activation"}
    assert set(found.scaling.category) <= {"temporary", "activation", "input"}
    assert found.scaling.uniform == (truth.first is None or abs(truth.first[1]) < found.scaling.explained * 0.05)
    assert sum(row.by_ratio for row in found.sites) == found.scaling.explained


@pytest.mark.parametrize("name", TRUTHS)
def test_everything_adds_up_and_the_way_back_is_the_negative(name: str):
    before, after = sides(name)
    found = diff(name)
    assert_adds_up(found)
    assert_negative(found, compare(after.snapshot(), before.snapshot(), at=TRUTHS[name].at))


def assert_adds_up(found: Diff) -> None:
    change = found.change.allocated
    assert sum(row.change for row in found.sites) == change
    assert sum(row.change for row in found.stacks) == change
    assert sum(found.categories.values()) + found.unaccounted == change
    assert sum(found.phases.values()) + found.unaccounted == change
    for row in found.sites:
        assert row.by_ratio + row.by_square + row.by_rounding + row.rest == row.change


def assert_negative(one: Diff, other: Diff) -> None:
    assert other.change.allocated == -one.change.allocated
    assert other.change.reserved == -one.change.reserved
    assert other.categories == {name: -count for name, count in one.categories.items()}
    assert other.phases == {name: -count for name, count in one.phases.items()}
    assert other.fragmentation == {name: None if n is None else -n for name, n in one.fragmentation.items()}
    assert other.unaccounted == -one.unaccounted
    assert sorted(map(_back, other.sites)) == sorted(map(_forth, one.sites))
    swapped = {"new": "gone", "gone": "new"}
    assert sorted(row.matched for row in other.sites) == sorted(
        swapped.get(row.matched, row.matched) for row in one.sites
    )


def _forth(row: SiteChange) -> tuple[str, int, int, int]:
    """A row by the site that it has in the recording that was BEFORE (where it is there)."""
    return str(row.old_site or row.site), row.change, row.by_ratio, row.by_rounding


def _back(row: SiteChange) -> tuple[str, int, int, int]:
    return str(row.site), -row.change, -row.by_ratio, -row.by_rounding


def test_the_truths_name_what_is_there():
    assert all(isinstance(truth, Truth) for truth in TRUTHS.values())
    assert set(TRUTHS[NEW_LINE].new) == {"kept"}
