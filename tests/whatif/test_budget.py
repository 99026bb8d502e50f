"""What a report replays is bounded by steps: the same on every machine, however busy it is."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import replace

import numpy as np
import pytest

from oomscope.allocator.compiled import CHOICE
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.replay import Replay
from oomscope.analysis import analyze
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.analysis.whatif import EXPANDABLE, report_whatif
from oomscope.analysis.whatif.alike import replay_as_recorded
from oomscope.analysis.whatif.allowance import STEPS_OF_AN_EVENT, Allowance, steps_in, steps_of_report
from oomscope.analysis.whatif.preparation import prepared
from oomscope.reading import load
from oomscope.rendering.json_report import render_json
from tests.samples import SAMPLES, sample
from tests.shared import needs_shared, shared_snapshot
from tests.test_captures import FOLDER

SPLIT = "max_split_size_mb:512"


def study(name: str) -> DeviceStudy:
    snapshot = sample(name)
    return study_device(snapshot, snapshot.devices[0].index)


def test_the_clock_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = sample("oom_fragmentation")
    told = render_json(analyze(snapshot))
    hours = iter(range(0, 10**9, 3600))
    for clock in ("monotonic", "perf_counter", "process_time", "time"):
        monkeypatch.setattr(time, clock, lambda: float(next(hours)))
    assert render_json(analyze(snapshot)) == told


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.03, 0.05, 0.1, None])
@pytest.mark.parametrize("name", ["oom_fragmentation", "train_ok"])
def test_the_compiled_core_decides_nothing(name: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for steps in (-(10**12), 10**12):  # taken so far: few enough for the plain model, and many
        monkeypatch.setattr(CHOICE, "steps", steps)
        answers.append(report_whatif(study(name), seconds=seconds))
    assert answers[0] == answers[1]


def test_the_more_there_is_the_more_is_said() -> None:
    left_out = [
        len(report_whatif(study("oom_fragmentation"), seconds=seconds).skipped) for seconds in (0, 0.02, 0.05, 0.1, 60)
    ]
    assert left_out == sorted(left_out, reverse=True)
    assert left_out[0] > left_out[2] > left_out[-1] == 0


def test_every_replay_is_counted_with_what_memory_came_and_went() -> None:
    subject = prepared(study("train_ok"))
    replay = subject.replayer.run(AllocatorConfig(), addresses=subject.addresses())
    allowance = Allowance(2 * replay.steps)
    assert allowance.allows(2 * replay.steps - 1)
    assert not allowance.allows(2 * replay.steps)
    allowance.spend(replay)
    assert allowance.spent == replay.steps + STEPS_OF_AN_EVENT * len(replay.segment_events)
    assert len(replay.segment_events) > 0
    assert Allowance(None).allows(10**18)


def test_a_replay_that_fails_early_is_counted_up_to_there() -> None:
    subject = prepared(study("oom_fragmentation"))
    limit = replace(subject.limit.limit, cap=subject.recorded.peak_reserved // 2)
    replay = subject.replayer.run(AllocatorConfig(), limit, subject.addresses())
    assert 0 < replay.steps < len(subject.replayer.program.op)
    assert subject.replayer.program.entry[replay.steps - 1] == replay.failures[-1].entry


def test_a_long_trace_has_less_but_more_than_one_replay() -> None:
    lengths = [0, 10_000, 100_000, 500_000, 1_000_000]
    budgets = [steps_of_report(length) for length in lengths]
    assert budgets == sorted(budgets, reverse=True)
    assert steps_of_report(10_000_000) > 10_000_000
    assert steps_in(2.5) == 2_500_000
    assert steps_in(0) == 0
    assert steps_in(float("inf")) > 10**18


@pytest.mark.parametrize("name", ["kv_cat", "duplicate", "retry_caught", "checkpointed"])
def test_of_a_short_trace_nothing_is_left_out(name: str) -> None:
    snapshot = load(FOLDER / f"{name}.pickle.xz")
    index = snapshot.devices[0].index
    assert report_whatif(study_device(snapshot, index)) == report_whatif(study_device(snapshot, index), seconds=1e9)


@needs_shared
def test_of_a_long_training_all_is_asked_but_what_empties_the_cache_again_and_again() -> None:
    answer = report_whatif(study_device(shared_snapshot("big_history"), 0))
    assert answer.skipped == ("empty_cache after each step",)
    assert answer.row(EXPANDABLE) is not None


def figures(replay: Replay) -> list[object]:
    names = [name for name in Replay.__slots__ if name not in ("config", "addresses", "steps")]
    return [getattr(replay, name) for name in names]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_bound_that_nothing_reaches_needs_no_replay(name: str) -> None:
    subject = prepared(study(name))
    config = replace(subject.config, max_split_size=1 << 40)
    known = replay_as_recorded(subject, config, subject.limit.limit)
    if known is None:
        assert subject.recorded.refused or not subject.complete or subject.config.expandable_segments
        return
    real = subject.replayer.run(config, subject.limit.limit, subject.addresses(), note_addresses=True)
    assert figures(known) == figures(real)
    assert np.array_equal(known.addresses, real.addresses)
    assert known.config == config


def test_a_bound_that_something_reaches_is_replayed() -> None:
    subject = prepared(study("train_ok"))
    limit = subject.limit.limit
    assert replay_as_recorded(subject, AllocatorConfig.parse(SPLIT), limit) is not None
    largest = max(size for _, _, size in subject.recorded.segment_events)
    for bound, is_same in ((largest, False), (largest + 1, True)):
        config = replace(subject.config, max_split_size=bound)
        assert (replay_as_recorded(subject, config, limit) is not None) is is_same
    assert replay_as_recorded(subject, AllocatorConfig.parse(EXPANDABLE), limit) is None
    assert replay_as_recorded(subject, AllocatorConfig.parse(f"{EXPANDABLE},{SPLIT}"), limit) is None
    rounded = AllocatorConfig.parse(f"{SPLIT},roundup_power2_divisions:4")
    assert replay_as_recorded(subject, rounded, limit) is None
    tighter = replace(limit, cap=subject.recorded.peak_reserved - 1)
    assert replay_as_recorded(subject, AllocatorConfig.parse(SPLIT), tighter) is None
