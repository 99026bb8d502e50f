"""Digests: small, the same however they are put together; ranks and groups that are made of them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from statistics import median_low

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomscope.analysis import analyze
from oomscope.analysis.compare.digest import Digest, as_document, digest, merged, read_document
from oomscope.analysis.compare.figures import SiteFigure
from oomscope.analysis.compare.ranks import _medians, compare_ranks
from oomscope.analysis.compare.triage import triage
from oomscope.analysis.records import Location
from oomscope.errors import RequestError
from tests.analysis.programs import MIB, Program
from tests.compare.seeded import PLAIN, ROOT, Variant, seeded_run
from tests.samples import SAMPLES, sample
from tests.shared import needs_shared, shared_snapshot, truth


@cache
def of_sample(name: str, file: str | None = None) -> Digest:
    return digest(analyze(sample(name), at="peak", whatif=False), file or f"{name}.pickle", "headline")


def of(variant: Variant, file: str) -> Digest:
    return digest(analyze(variant.snapshot(), at="peak", whatif=False), file)


RANKS = st.one_of(st.none(), st.integers(0, 5))
MADE = st.builds(
    lambda name, rank, peak: replace(
        of_sample(name), rank=rank, rank_source="recorded" if rank is not None else None, peak_allocated=peak
    ),
    st.sampled_from(SAMPLES),
    RANKS,
    st.one_of(st.none(), st.integers(0, 1 << 40)),
)
GROUPS = st.lists(MADE, max_size=6)


@given(GROUPS, GROUPS, GROUPS)
@settings(max_examples=40)
def test_however_digests_are_put_together_the_result_is_the_same(one, two, three):
    whole = merged(one, two, three)
    assert merged(merged(one, two), three) == whole == merged(one, merged(two, three))
    assert merged(three, one, two) == whole
    assert merged(whole, whole) == whole
    assert read_document(json.loads(json.dumps(as_document(whole)))) == whole


@given(GROUPS, GROUPS)
@settings(max_examples=20)
def test_ranks_and_groups_do_not_depend_on_the_order_of_files(one, two):
    assert compare_ranks([*one, *two]) == compare_ranks([*two, *one])
    assert triage([*one, *two]) == triage([*two, *one])
    assert sum(group.count for group in triage([*one, *two])) == len(merged(one, two))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_digest_is_small_adds_up_and_names_no_folder(name: str):
    found = of_sample(name)
    assert len(json.dumps(as_document([found]))) < 40_000
    if found.peak_allocated is not None:
        assert sum(site.bytes for site in found.sites) + found.others == found.peak_allocated
    files = {where.file for site in found.sites for where in (site.site, site.caller) if where}
    assert not any(file.startswith("/") for file in files)


@pytest.mark.parametrize(
    "damage",
    [None, [], {}, {"kind": "oomscope digest"}, {"kind": "oomscope digest", "schema_version": 1, "files": [1]}],
)
def test_what_is_no_digest_is_refused(damage):
    with pytest.raises(RequestError, match="digest"):
        read_document(damage)


@pytest.mark.parametrize(
    ("file", "rank", "source"),
    [
        ("runs/oom_node7_rank3_pid8.pickle", 3, "file"),
        ("a/rank2/oom.pickle", None, None),
        ("ddp.rank0.pickle.xz", 0, "file"),
        ("Rank-12.pkl", 12, "file"),
        ("oom.pickle", None, None),
    ],
)
def test_a_rank_is_told_by_the_name_of_its_file(file: str, rank: int | None, source: str | None):
    found = of_sample("train_ok", file)
    assert (found.rank, found.rank_source) == (rank, source)


def rank(number: int, peak: int, **more) -> Digest:
    site = SiteFigure(Location("train.py", 7, "step"), None, None, peak, "activation")
    changes = {"file": f"rank{number}.pickle", "rank": number, "rank_source": "file", "peak_allocated": peak,
               "sites": (site,), "categories": {"activation": peak}, "others": 0, "reason": None}  # fmt: skip
    return replace(of_sample("train_ok"), **{**changes, **more})


def test_the_one_that_differs_is_named_with_its_line_and_its_bytes():
    found = compare_ranks([rank(number, 100 * MIB + number) for number in range(7)] + [rank(7, 180 * MIB)])
    (one,) = found.outliers
    assert (one.rank, one.bytes) == (7, 80 * MIB - 3)
    assert (one.sites[0].bytes, one.sites[0].median) == (180 * MIB, 100 * MIB + 3)
    assert one.categories == {"activation": 80 * MIB - 3}
    assert (found.sites[0].min, found.sites[0].max, found.sites[0].max_rank) == (100 * MIB, 180 * MIB, 7)


def test_ranks_that_differ_by_design_are_no_outliers():
    found = compare_ranks([rank(number, (100 + 10 * number) * MIB) for number in range(6)])
    assert found.outliers == ()


def test_who_failed_first_who_followed_and_who_is_missing():
    found = compare_ranks(
        [
            rank(0, 10, reason="peers"),
            rank(2, 10, reason="oom", oom_time_us=200),
            rank(4, 10, reason="oom", oom_time_us=100),
            rank(5, 10, reason="exit", world_size=8),
        ]
    )
    assert (found.first, found.followed) == (4, (0, 2))
    assert found.missing == (1, 3, 6, 7)


def test_an_absurd_number_of_ranks_is_not_counted():
    found = compare_ranks([rank(0, 10, world_size=4), rank(1 << 60, 10, world_size=1 << 62)])
    assert found.missing == (1, 2, 3)


def test_of_several_files_of_a_rank_the_first_failure_is_shown():
    later = rank(0, 10, file="b", oom_time_us=200)
    found = compare_ranks([rank(0, 10, file="a"), later, rank(0, 10, file="c", oom_time_us=100)])
    assert found.ranks[0].file == "c"
    assert set(found.repeated) == {"a", "b"}


def test_ranks_that_nothing_tells_are_counted_in_the_order_of_files():
    found = compare_ranks([rank(0, 10, rank=None, rank_source=None, file=name) for name in "ba"])
    assert [(one.rank, one.rank_source, one.file) for one in found.ranks] == [(0, "order", "a"), (1, "order", "b")]
    assert found.missing == ()


def failing(variant: Variant) -> Digest:
    """The digest of a run that ends with a request that fails, larger with the batch."""
    program = Program()
    seeded_run(program, variant)
    program.oom((20 << 30) * variant.batch, variant.code.stack("head"))
    return digest(analyze(program.snapshot(), at="peak", whatif=False), "x")


def test_the_same_mistake_has_one_fingerprint_whatever_sizes_lines_and_folders():
    moved = replace(ROOT, shifts={"model.py": 3, "train.py": 9})
    made = [failing(Variant(batch=batch, code=code)) for batch in (4, 8) for code in (PLAIN.code, moved)]
    assert {one.cause for one in made} != {None}
    assert len({one.fingerprint for one in made}) == 1
    assert made[0].fingerprint != of(PLAIN, "x").fingerprint == of(Variant(batch=8), "y").fingerprint
    assert of_sample("oom_fragmentation").fingerprint != of_sample("train_ok").fingerprint
    one, other = triage([of_sample("oom_fragmentation"), of_sample("train_ok")])
    assert (one.cause, other.cause) == ("fragmentation", None)
    assert one.first_seen is not None
    assert one.first_seen.startswith("20")


@needs_shared
def test_the_ranks_of_a_real_job():
    digests = [
        digest(analyze(shared_snapshot(f"ddp.rank{one}"), at="peak", whatif=False), f"ddp.rank{one}.pickle.xz")
        for one in (0, 1)
    ]
    found = compare_ranks(digests)
    peaks = [truth(f"ddp.rank{one}")["stats"]["allocated_bytes.all.peak"] for one in (0, 1)]
    (one,) = found.outliers
    assert (one.rank, one.bytes) == (1, peaks[1] - peaks[0])
    assert sum(site.bytes - site.median for site in one.sites) == pytest.approx(one.bytes, abs=MIB)
    assert {site.site.line for site in one.sites[:3] if site.site} == {51, 29}
    assert (found.first, found.missing) == (None, ())


@needs_shared
def test_two_dumps_of_one_mistake_are_one_group():
    def made(name: str, file: str) -> Digest:
        return digest(analyze(shared_snapshot(name), at="peak", whatif=False), file)

    names = ("oom_fragmentation", "oom_fragmentation.expandable", "oom_leak_total_loss", "oom_optimizer_step")
    groups = triage([made(name, f"{name}/oom.pickle") for name in names])
    assert [group.count for group in groups] == [2, 1, 1]
    assert groups[0].cause == "fragmentation"
    assert len(groups[0].jobs) == 2


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)), min_size=1, max_size=9))
def test_medians_are_those_of_all_ranks_though_most_have_no_such_line(columns: list[dict[str, int]]):
    expected = {
        name: median_low([column.get(name, 0) for column in columns])
        for name in {n for column in columns for n in column}
    }
    assert _medians(columns) == expected
