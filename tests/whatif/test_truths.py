"""Predictions against the same program really run under other settings and caps (H200, torch 2.11)."""

from __future__ import annotations

import pytest

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.analysis.whatif import whatif
from oomscope.analysis.whatif.least import least_memory
from tests.shared import SHARED, needs_shared, shared_snapshot, truth
from tests.whatif.subjects import VARLEN, shared_subject

GIB = 1 << 30
RUNS = sorted(
    path.name[: -len(".truth.json")]
    for pattern in ("whatif.*.truth.json", "cap.*.truth.json")
    for path in SHARED.glob(pattern)
)


@needs_shared
@pytest.mark.parametrize("name", RUNS)
def test_the_default_trace_predicts_the_real_run_to_the_byte(name: str) -> None:
    subject, real = shared_subject(VARLEN), truth(name)
    config, limit = AllocatorConfig.parse(real["conf"]), Limit(cap=real["limit_bytes"])
    replay = subject.replayer.run(config, limit, subject.addresses())
    assert replay.peak_reserved == real["stats"]["reserved_bytes.all.peak"]
    assert replay.final_reserved == real["stats"]["reserved_bytes.all.current"]
    assert replay.peak_allocated == real["stats"]["allocated_bytes.all.peak"]
    assert replay.retries == real["num_alloc_retries"]
    assert (not replay.survived) == (real["oom"] is not None)
    if real["oom"]:
        assert subject.allocations_before(replay.failures[0].entry) == real["allocs_before_end"]


@needs_shared
@pytest.mark.parametrize(("conf", "dies", "lives"), [("", 18.03, 18.05), ("expandable_segments:True", 15.27, 15.28)])
def test_the_least_memory_lies_between_the_runs_that_died_and_those_that_lived(
    conf: str, dies: float, lives: float
) -> None:
    subject = shared_subject(VARLEN)
    least = least_memory(subject.replayer, AllocatorConfig.parse(conf), subject.addresses)
    assert dies * GIB < least.cap <= lives * GIB


@needs_shared
def test_the_rows_of_the_command_are_those_predictions() -> None:
    capped = truth("whatif.oom_varlen_training.split512")
    answer = whatif(
        shared_snapshot(VARLEN),
        0,
        settings=["max_split_size_mb:512", "expandable_segments:True"],
        limit=capped["limit_bytes"],
        orders=1,
        least_memory="none",
    )
    assert [row.setting for row in answer.rows] == ["recorded", "max_split_size_mb:512", "expandable_segments:True"]
    recorded, split, expandable = answer.rows
    assert recorded.peak_reserved == truth(VARLEN)["stats"]["reserved_bytes.all.peak"]
    assert split.peak_reserved == capped["stats"]["reserved_bytes.all.peak"]
    assert split.limit == capped["limit_bytes"]
    assert split.headroom == split.limit - split.peak_reserved
    assert expandable.exact
    assert not split.exact, "one order of addresses is not all"


@needs_shared
@pytest.mark.parametrize("name", ["oom_activations", "oom_fragmentation"])
def test_an_oom_is_predicted_from_one_setting_to_the_other(name: str) -> None:
    real = truth(f"{name}.expandable")
    subject = shared_subject(name)
    config = AllocatorConfig.parse(real["conf"])
    replay = subject.replayer.run(config, Limit(cap=real["limit_bytes"]), subject.addresses())
    assert replay.peak_reserved == real["stats"]["reserved_bytes.all.peak"]
    assert replay.final_reserved == real["stats"]["reserved_bytes.all.current"]
    assert replay.retries == real["num_alloc_retries"]
    assert [failure.recorded for failure in replay.failures] == [True]
