"""Budgets and baselines: what is broken, and who broke it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.compare.baseline import as_baseline, read_baseline
from oomscope.analysis.compare.budget import Budget, check
from oomscope.analysis.compare.figures import Figures, figures
from oomscope.analysis.whatif.changes import parse_site
from oomscope.errors import RequestError
from tests.analysis.programs import MIB
from tests.compare.seeded import PLAIN, TRUTHS, Variant
from tests.samples import sample
from tests.shared import needs_shared, shared_snapshot, truth


@cache
def measured(name: str) -> Figures:
    variant = PLAIN if name == "plain" else TRUTHS[name].variant
    return figures(analyze(variant.snapshot(), at="peak", whatif=False))


@cache
def of_sample(name: str) -> Figures:
    return figures(analyze(sample(name), at="peak", whatif=False))


def broken(found: Figures, **budget) -> list[tuple[str, str | None]]:
    return [(one.budget, one.name) for one in check(found, Budget(**budget)).broken]


def test_each_limit_holds_at_its_figure_and_breaks_one_byte_below():
    found = of_sample("train_ok")
    assert found.peak_allocated
    assert found.peak_reserved
    site = parse_site("workloads.py:29")
    at_site = sum(one.bytes for one in found.sites if one.site and one.site.line == 29)
    exact = {
        "peak": found.peak_allocated,
        "reserved": found.peak_reserved,
        "fragmentation": found.fragmentation,
        "growth": found.growth_per_pass,
        "sites": ((site, at_site),),
        "categories": {"activation": found.categories["activation"]},
    }
    assert check(found, Budget(**exact)).ok
    assert len(check(found, Budget(**exact)).checked) == 6
    less = {
        "peak": found.peak_allocated - 1,
        "reserved": found.peak_reserved - 1,
        "fragmentation": found.fragmentation - 1,
        "sites": ((site, at_site - 1),),
        "categories": {"activation": found.categories["activation"] - 1},
    }
    assert [name for name, _ in broken(found, **less)] == [
        "peak_allocated", "peak_reserved", "fragmentation", "site", "category",
    ]  # fmt: skip
    assert broken(found, fragmentation_share=0.0) == [("fragmentation", None)]
    assert broken(found, fragmentation_share=1.0) == []


def test_who_broke_it_is_named_largest_first():
    (one,) = check(of_sample("train_ok"), Budget(peak=0)).broken
    assert [by.bytes for by in one.by] == sorted((by.bytes for by in one.by), reverse=True)
    assert len(one.by) == 5
    (leak,) = check(measured("one more tensor kept a step"), Budget(growth=MIB)).broken
    assert leak.by[0].site is not None
    assert (leak.found, leak.by[0].site.function) == (8 * MIB, "log_metrics")


def test_what_cannot_be_known_neither_holds_nor_breaks():
    empty = Figures(None, None, None, None, {}, ())
    result = check(empty, Budget(peak=1 << 40, growth=1 << 40, categories={"activation": 1}, fragmentation=5))
    assert result.broken == ()
    assert len(result.unknown) == 4
    assert not result.ok


@pytest.mark.parametrize(
    "name", ["lines moved", "files renamed", "functions renamed", "another install root", "rank 3"]
)
def test_an_edit_that_changes_nothing_breaks_no_baseline(name: str):
    assert broken(measured(name), baseline=measured("plain"), tolerance=0.0) == []


def test_a_seeded_regression_breaks_the_baseline_at_its_line():
    baseline = read_baseline(json.loads(json.dumps(as_baseline(measured("plain")))))
    result = check(measured("a tensor kept in a moved and renamed file"), Budget(baseline=baseline, tolerance=0.02))
    names = {one.budget for one in result.broken}
    assert {"peak_allocated", "growth_per_pass", "site"} <= names
    for one in result.broken:
        assert one.by[0].site is not None, one.budget
        assert one.by[0].site.function == "log_metrics", one.budget
    (site,) = [one for one in result.broken if one.budget == "site"]
    assert (site.baseline, site.found) == (2 * MIB, 34 * MIB)


def test_a_regression_that_a_saving_hides_breaks_the_baseline_too():
    smaller = figures(analyze(Variant(kept=8, without=("gelu",)).snapshot(), at="peak", whatif=False))
    baseline = measured("plain")
    assert smaller.peak_allocated is not None
    assert baseline.peak_allocated is not None
    assert smaller.peak_allocated < baseline.peak_allocated
    names = [one.budget for one in check(smaller, Budget(baseline=baseline)).broken]
    assert "site" in names
    assert "peak_allocated" not in names


def test_the_tolerance_is_that_of_the_whole():
    found, baseline = measured("batch 1.5"), measured("plain")
    assert broken(found, baseline=baseline, tolerance=0.02)
    assert broken(found, baseline=baseline, tolerance=0.6) == []


@pytest.mark.parametrize("name", ["plain", "all at once, batch doubled, rank 3"])
def test_a_baseline_reads_back_is_small_and_holds_no_folder(name: str):
    document = json.loads(json.dumps(as_baseline(measured(name))))
    found = read_baseline(document)
    for one in ("peak_allocated", "peak_reserved", "fragmentation", "growth_per_pass", "categories"):
        assert getattr(found, one) == getattr(measured(name), one)
    assert len(json.dumps(document)) < 20_000
    assert not any(row["file"].startswith(("/", "C:")) for row in document["lines"])
    assert broken(measured(name), baseline=found, tolerance=0.0) == []


@pytest.mark.parametrize(
    "damage",
    [
        [],
        {},
        {"kind": "oomscope baseline", "schema_version": 9},
        {"kind": "oomscope baseline", "schema_version": 1},
        {"lines": [{"file": "a"}]},
        {"sites": [{"bytes": 1, "line": 99, "caller": None, "label": None, "category": "x"}]},
        {"sites": [{"bytes": 1, "line": -1, "caller": None, "label": None, "category": "x"}]},
        {"peak_allocated": "much"},
        {"peak_allocated": -1},
        {"categories": [1]},
    ],
)
def test_a_damaged_baseline_is_refused(damage):
    if isinstance(damage, dict) and damage and "kind" not in damage:
        damage = {**as_baseline(measured("plain")), **damage}
    with pytest.raises(RequestError, match="baseline"):
        read_baseline(damage)


@needs_shared
def test_the_peak_is_torchs_own_and_a_baseline_of_a_rank_names_the_other():
    rank = [figures(analyze(shared_snapshot(f"ddp.rank{one}"), at="peak", whatif=False)) for one in (0, 1)]
    for number, found in enumerate(rank):
        stats = truth(f"ddp.rank{number}")["stats"]
        assert found.peak_allocated == stats["allocated_bytes.all.peak"]
        assert found.peak_reserved == stats["reserved_bytes.all.peak"]
    baseline = read_baseline(as_baseline(rank[0]))
    assert check(rank[0], Budget(baseline=baseline, tolerance=0)).ok
    result = check(rank[1], Budget(baseline=baseline))
    peak = result.broken[0]
    assert (peak.budget, peak.by[0].label, peak.by[1].site and peak.by[1].site.line) == (
        "peak_allocated",
        "backward",
        51,
    )


def test_a_recording_from_midway_is_not_complete():
    assert of_sample("train_ok").complete
    assert not check(replace(of_sample("train_ok"), complete=False), Budget(peak=1)).complete
