"""Real recordings against each other."""

from __future__ import annotations

from functools import cache

import pytest

from oomscope.analysis.compare.diff import compare
from oomscope.analysis.compare.records import Diff
from oomscope.errors import RequestError
from tests.compare.test_seeded import assert_adds_up, assert_negative
from tests.shared import captures, needs_shared, recorded, shared_snapshot, truth

pytestmark = needs_shared


@cache
def diff(before: str, after: str, at: str = "auto") -> Diff:
    return compare(shared_snapshot(before), shared_snapshot(after), at=at)


PAIRS = [
    ("ddp.rank0", "ddp.rank1"),
    ("train_ok", "oom_activations"),
    ("train_ok", "train_ok.expandable"),
    ("oom_fragmentation", "oom_fragmentation.expandable"),
    ("oom_activations", "oom_activations.expandable"),
    ("train_ok", "state_only"),
    ("late_start", "ring_wrapped"),
    ("no_history", "compiled"),
    ("plan/resnet.base", "plan/llama.base"),
]


@pytest.mark.parametrize(("before", "after"), PAIRS, ids="-".join)
@pytest.mark.parametrize("at", ["auto", "peak", "end"])
def test_everything_adds_up_and_the_way_back_is_the_negative(before: str, after: str, at: str):
    found = diff(before, after, at)
    assert_adds_up(found)
    assert_negative(found, diff(after, before, at))


@pytest.mark.parametrize("name", [*captures()[:6], *recorded()])
def test_of_a_capture_and_itself_nothing_changed(name: str):
    assert diff(name, name).nothing_changed


def test_the_difference_of_ranks_is_that_of_torch_and_of_its_larger_batch():
    found = diff("ddp.rank0", "ddp.rank1")
    peaks = [truth(f"ddp.rank{rank}")["stats"]["allocated_bytes.all.peak"] for rank in (0, 1)]
    assert sum(row.change for row in found.sites) == peaks[1] - peaks[0]
    assert found.scaling is not None
    assert found.scaling.factor == pytest.approx(13 / 4, rel=0.01)
    assert found.scaling.uniform
    named = {row.site.line: row.change for row in found.sites if row.site}
    assert named[51] > named[29] > named[20] > 300 << 20
    assert (found.before.device, found.after.device) == (0, 1)


BATCHES = [
    ("plan/llama.base", "plan/llama.b6", 1.5, False),
    ("plan/resnet.base", "plan/resnet.b48", 1.5, False),
    ("plan/llama.base", "plan/llama.s768", 1.5, True),
    ("plan/llama.s768", "plan/llama.base", 1 / 1.5, True),
    ("train_ok", "oom_activations", 48, False),
]


@pytest.mark.parametrize(("before", "after", "factor", "squared"), BATCHES)
def test_another_batch_or_length_is_one_factor_and_no_line_is_misjudged(
    before: str, after: str, factor: float, squared: bool
):
    found = diff(before, after, "peak")
    assert found.scaling is not None
    assert found.scaling.factor == pytest.approx(factor, rel=0.01)
    assert found.scaling.uniform
    assert {"activation", "input"} <= set(found.scaling.category)
    assert not {"parameter", "optimizer_state", "buffer"} & set(found.scaling.category)
    assert [row for row in found.sites if row.is_of_program and abs(row.rest) > 1 << 20] == []
    assert (found.scaling.squared != 0) == squared
    for row in found.sites:
        if row.category in ("parameter", "optimizer_state"):
            assert row.by_ratio == 0


def test_another_setting_of_the_allocator_changes_blocks_and_no_request():
    found = diff("train_ok", "train_ok.expandable", "peak")
    assert found.scaling is None
    assert {row.reason for row in found.sites} == {"rounding", "unchanged"}
    assert sum(row.by_rounding for row in found.sites) == found.change.allocated
    assert {row.name for row in found.settings} == {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments"}


def test_holders_and_names_are_compared_where_both_recordings_have_them():
    found = diff("recorded/metrics_leak", "recorded/exception_holds", "end")
    assert found.holders is not None
    assert found.names is not None
    assert diff("recorded/metrics_leak", "train_ok", "end").holders is None


def test_an_instant_that_one_of_them_lacks_is_refused_by_its_name():
    snapshots = shared_snapshot("train_ok"), shared_snapshot("oom_activations")
    with pytest.raises(RequestError, match=r"a\.pickle: No OOM"):
        compare(*snapshots, at="oom", files=("a.pickle", "b.pickle"))
    with pytest.raises(RequestError, match="device 7"):
        compare(*snapshots, device=7)
