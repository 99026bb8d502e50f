"""Rows: limits, orders of addresses, least memory, what is said beside the figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.addresses import Ascending
from oomscope.allocator.limits import Limit
from oomscope.analysis.whatif import EXPANDABLE, WhatIf, whatif
from oomscope.analysis.whatif.least import least_memory, peak_live
from oomscope.analysis.whatif.preparation import Subject
from oomscope.errors import RequestError
from oomscope.wording.whatif_table import notes_text
from tests import builders
from tests.said import reason_text
from tests.whatif.recorder import Recorder
from tests.whatif.subjects import subject_of
from tests.whatif.test_round_trip import ACTIONS, CONFIGS, record

MIB = 1 << 20


def fragmented(cap: int | None = None) -> Recorder:
    """Blocks of 8 MiB, every other one given back, then a request that fits into no hole."""
    recorder = Recorder(limit=Limit(cap=cap))
    for name in range(20):
        recorder.malloc(name, 8 * MIB)
    for name in range(0, 20, 2):
        recorder.free(name)
    recorder.malloc(100, 60 * MIB)
    return recorder


def ask(recorder: Recorder, **question: object) -> WhatIf:
    return whatif(recorder.snapshot(), 0, **question)  # type: ignore[arg-type]


def test_the_first_row_is_the_recorded_one_and_settings_keep_their_words() -> None:
    asked = ["max_split_size_mb:64, expandable_segments:True", "expandable_segments:True"]
    answer = ask(fragmented(), settings=asked)
    assert [row.setting for row in answer.rows] == ["recorded", *asked]
    assert answer.self_check.exact


def test_every_row_says_how_far_it_goes() -> None:
    assert all("up to the last recorded entry" in notes_text(row) for row in ask(fragmented()).rows)


def test_without_a_question_the_common_settings_are_tried_each_beside_the_recorded_ones() -> None:
    settings = [row.setting for row in ask(fragmented()).rows]
    assert settings[:2] == ["recorded", EXPANDABLE]
    assert "garbage_collection_threshold:0.6" not in settings, "it does nothing without a cap"
    capped = [row.setting for row in ask(fragmented(), limit=400 * MIB).rows]
    assert "garbage_collection_threshold:0.6" in capped
    recorder = Recorder("roundup_power2_divisions:4")
    recorder.malloc(0, 5 * MIB)
    row = ask(recorder).row(EXPANDABLE)
    assert row is not None
    assert "other settings as recorded (roundup_power2_divisions:4)" in notes_text(row)


def test_a_limit_is_a_cap_for_every_row() -> None:
    answer = ask(fragmented(), settings=[EXPANDABLE], limit=240 * MIB)
    recorded, expandable = answer.rows
    assert (recorded.limit, expandable.limit) == (240 * MIB, 240 * MIB)
    assert recorded.oom
    assert recorded.failed_allocation == 20
    # 200 MiB are reserved in segments of 20 MiB, none of them free; 60 MiB more are 20 MiB too many.
    assert recorded.headroom == -20 * MIB
    assert not expandable.oom
    assert expandable.failed_allocation is None
    assert expandable.headroom == 240 * MIB - expandable.peak_reserved


def test_a_card_bounds_what_is_obtained_and_needs_no_cap() -> None:
    answer = ask(fragmented(), settings=["garbage_collection_threshold:0.1"], gpu="1GiB")
    assert all(row.limit == 1 << 30 for row in answer.rows)
    assert answer.rows[1].peak_reserved == answer.rows[0].peak_reserved
    assert "CUDA context" in notes_text(answer.rows[0])
    with pytest.raises(RequestError, match="neither a size such as 24GiB nor a known device"):
        ask(fragmented(), gpu="Voodoo")


def test_the_recorded_cap_is_bracketed_by_what_was_served_and_what_was_refused() -> None:
    recorder = fragmented(cap=240 * MIB)
    answer = ask(recorder, settings=[EXPANDABLE])
    recorded, expandable = answer.rows
    assert recorded.oom
    assert recorded.limit == 200 * MIB
    assert "between 200 MiB and 260 MiB; every cap in that range gives the same" in notes_text(recorded)
    assert recorded.least_memory == 260 * MIB
    # 160 MiB are mapped in pages of 20 MiB, each in use in part: 60 MiB more fit under 260 MiB, and not under 200.
    assert expandable.oom is None
    assert "200 MiB is used" in notes_text(expandable)
    assert "fails at 200 MiB, survives at 260 MiB" in notes_text(expandable)
    assert expandable.least_memory == 220 * MIB


def test_a_device_that_was_full_is_the_limit() -> None:
    recorder = Recorder(limit=Limit(capacity=300 * MIB, device_total=320 * MIB))
    for name in range(3):
        recorder.malloc(name, 90 * MIB)
    recorder.malloc(3, 90 * MIB)
    recorded = ask(recorder, settings=[]).rows[0]
    assert recorded.limit == 300 * MIB
    assert recorded.oom


def test_the_dumps_own_context_says_the_limit() -> None:
    recorder = fragmented()
    context = {"devices": [{"device": 0, "total": 1 << 30, "free": 500 * MIB, "cap": 400 * MIB}]}
    answer = whatif(recorder.snapshot(oomscope=context), 0, settings=[])
    assert answer.rows[0].limit == 400 * MIB


def test_a_request_that_the_recording_was_refused_is_part_of_the_run() -> None:
    recorder = fragmented(cap=240 * MIB)
    subject = subject_of(recorder.snapshot())
    least = least_memory(subject.replayer, subject.config, subject.addresses)
    assert least.cap == 260 * MIB


def test_what_follows_a_caught_failure_is_replayed_as_well() -> None:
    recorder = fragmented(cap=240 * MIB)
    for name in range(1, 20, 2):
        recorder.free(name)
    recorder.malloc(200, 60 * MIB)
    recorded, expandable = ask(recorder, settings=[EXPANDABLE]).rows
    assert recorded.oom
    assert recorded.failed_allocation == 20
    assert recorded.final_reserved == recorder.allocator.reserved
    assert not expandable.oom


def test_where_orders_of_addresses_disagree_the_range_is_given_and_it_is_not_exact() -> None:
    # Two segments of 20 MiB are free in part; which one serves decides whether the other can be released.
    recorder = Recorder()
    for name in range(4):
        recorder.malloc(name, 10 * MIB - 512)
    recorder.free(0)
    recorder.free(2)
    recorder.malloc(5, 10 * MIB - 512)
    recorder.free(1)
    recorder.empty_cache()
    recorder.malloc(6, 30 * MIB)
    row = ask(recorder, settings=["max_split_size_mb:512"]).rows[1]
    low, high = row.range["peak_reserved"]
    assert low <= row.peak_reserved <= high
    assert row.exact == (low == high)
    if low != high:
        assert "the order of segment addresses matters" in notes_text(row)


def test_expandable_segments_leave_no_doubt_about_addresses() -> None:
    row = ask(fragmented(), settings=[EXPANDABLE], orders=1).rows[1]
    assert row.exact
    assert "order" not in notes_text(row)


def test_one_order_is_said_to_be_one() -> None:
    row = ask(fragmented(), settings=["max_split_size_mb:512"], orders=1).rows[1]
    assert not row.exact
    assert "one order of addresses tried" in notes_text(row)


def test_what_there_is_no_time_for_is_said() -> None:
    answer = ask(fragmented(), budget=0)
    assert [row.setting for row in answer.rows] == ["recorded", EXPANDABLE]
    assert "max_split_size_mb:512" in answer.skipped
    assert "minimum not searched for: time budget spent" in notes_text(answer.rows[1])


def test_a_late_recording_answers_for_its_window_and_only_what_it_can() -> None:
    recorder = fragmented()
    recorder.forget()
    recorder.malloc(300, 70 * MIB)
    answer = ask(recorder, settings=[EXPANDABLE, "max_split_size_mb:512"])
    recorded, expandable, split = answer.rows
    assert "does not begin with the first allocation" in reason_text(answer.self_check)
    assert notes_text(recorded).startswith("from the first recorded entry")
    assert recorded.peak_reserved == recorder.allocator.reserved
    assert expandable.peak_reserved is not None
    assert not expandable.exact
    assert split.peak_reserved is None
    assert "not answered" in notes_text(split)


def test_a_fraction_needs_a_card_to_be_a_fraction_of() -> None:
    asked = ["per_process_memory_fraction:0.25"]
    assert "no effect here" in notes_text(ask(fragmented(), settings=asked).rows[1])
    assert ask(fragmented(), settings=asked, gpu="2GiB").rows[1].limit == 512 * MIB


def test_a_setting_that_the_recorded_torch_did_not_have_is_said_to_be_too_new() -> None:
    row = ask(fragmented(), settings=["large_segment_size_mb:40"]).rows[1]
    assert "large_segment_size needs torch 2.11" in notes_text(row)


def test_a_setting_that_torch_would_refuse_is_refused() -> None:
    with pytest.raises(RequestError, match="--setting max_split_size_mb:3: max_split_size_mb must be at least 20"):
        ask(fragmented(), settings=["max_split_size_mb:3"])


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(RequestError, match="nothing about device 3; it has 0"):
        whatif(fragmented().snapshot(), 3)


def test_the_cache_is_emptied_between_steps() -> None:
    recorder = Recorder()
    begins = []
    for step in range(4):
        begins.append(len(recorder.entries))
        recorder.malloc(step, (30 + 10 * step) * MIB)
        recorder.free(step)
    answer = whatif(recorder.snapshot(), 0, steps=begins)
    each, before_peak = answer.row("empty_cache after each step"), answer.row("empty_cache before the peak step")
    assert answer.rows[0].peak_reserved == (30 + 40 + 50 + 60) * MIB
    assert each is not None
    assert each.peak_reserved == 60 * MIB
    assert before_peak is not None
    assert before_peak.peak_reserved == (30 + 40 + 50) * MIB
    assert ask(recorder).row("empty_cache after each step") is None, "without steps there is no such row"


# Changed programs


def test_without_a_line_its_allocations_are_gone_and_the_answer_is_an_estimate() -> None:
    recorder = Recorder(limit=Limit(cap=200 * MIB))
    for name in range(9):
        recorder.malloc(name, 20 * MIB, frames=[builders.frame("log", 17, "/workspace/train/metrics.py")])
    recorder.malloc(50, 60 * MIB)
    answer = ask(recorder, without=["metrics.py:17"])
    recorded, changed, expandable = answer.rows
    assert recorded.oom
    assert changed.setting == "recorded, without metrics.py:17"
    assert not changed.oom
    assert changed.peak_reserved == 60 * MIB
    assert not changed.exact
    assert "an estimate" in notes_text(changed)
    assert "9 allocations of metrics.py:17 left out" in notes_text(changed)
    assert expandable.setting == "expandable_segments:True, without metrics.py:17"


def test_a_place_counts_wherever_it_stands_in_the_stack() -> None:
    recorder = Recorder()
    inner, outer = builders.frame("forward", 5, "/venv/torch/nn/linear.py"), builders.frame("step", 30, "train.py")
    recorder.malloc(0, 30 * MIB, frames=[inner, outer])
    recorder.malloc(1, 30 * MIB, frames=[inner])
    changed = ask(recorder, without=["train.py:30"]).rows[1]
    assert changed.peak_reserved == 30 * MIB


def test_scaling_scales_what_a_line_asks_for() -> None:
    recorder = Recorder()
    recorder.malloc(0, 40 * MIB, frames=[builders.frame("forward", 5, "model.py")])
    changed = ask(recorder, scale=["model.py:5=0.5"]).rows[1]
    assert changed.peak_reserved == 20 * MIB
    assert changed.setting == "recorded, model.py:5 × 0.5"


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"without": ["nowhere.py:1"]}, "no recorded allocation comes from nowhere.py:1"),
        ({"scale": ["model.py:5"]}, "is not SITE=FACTOR"),
        ({"scale": ["model.py:5=-1"]}, "is not SITE=FACTOR"),
        ({"without": [""]}, "is not a place in the code"),
    ],
)
def test_a_change_that_means_nothing_is_refused(question: dict[str, list[str]], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        ask(fragmented(), **question)


# Least memory


def subject(actions: list[tuple[str, int, int, int]]) -> Subject:
    recorder = Recorder()
    record(recorder, actions)
    assume(recorder.began)
    return subject_of(recorder.snapshot())


@given(ACTIONS, st.sampled_from(CONFIGS))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_least_memory_suffices_and_a_byte_less_does_not(
    actions: list[tuple[str, int, int, int]], conf: str
) -> None:
    prepared, config = subject(actions), AllocatorConfig.parse(conf)
    least = least_memory(prepared.replayer, config, Ascending)
    enough = prepared.replayer.run(config, Limit(cap=least.cap), Ascending())
    assert enough.survived
    assert enough.retries == least.retries
    # torch compares the request with the cap, but maps whole pages.
    excess = 20 * MIB if config.expandable_segments else 0
    assert enough.peak_reserved <= least.cap + excess
    assert least.cap + excess >= peak_live(prepared.replayer, config)
    assert not prepared.replayer.run(config, Limit(cap=least.cap - 1), Ascending()).survived


@given(ACTIONS, st.sampled_from(CONFIGS), st.integers(1, 400 * MIB))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_all_caps_that_a_replay_says_are_the_same_are_the_same(
    actions: list[tuple[str, int, int, int]], conf: str, cap: int
) -> None:
    prepared, config = subject(actions), AllocatorConfig.parse(conf)
    replay = prepared.replayer.run(config, Limit(cap=cap), Ascending(), note_addresses=True)
    assert replay.same_caps is not None
    least, end = replay.same_caps
    assert least <= cap
    assert end is None or cap < end
    for other in (least, end - 1 if end is not None else 1 << 40):
        again = prepared.replayer.run(config, Limit(cap=other), Ascending(), note_addresses=True)
        assert again.segment_events == replay.segment_events
        assert np.array_equal(again.addresses, replay.addresses)


def test_under_garbage_collection_the_least_memory_is_found_cap_by_cap() -> None:
    prepared = subject_of(fragmented().snapshot())
    config = AllocatorConfig.parse("garbage_collection_threshold:0.5")
    least = least_memory(prepared.replayer, config, Ascending)
    assert prepared.replayer.run(config, Limit(cap=least.cap), Ascending()).survived
    assert not prepared.replayer.run(config, Limit(cap=least.cap - 2 * MIB), Ascending()).survived


def test_a_phase_can_be_scaled_by_its_name() -> None:
    recorder = Recorder()
    recorder.malloc(0, 40 * MIB)
    recorder.malloc(1, 60 * MIB)
    answer = ask(recorder, scale=["forward=0.5"], phases={"forward": np.array([False, True])})
    assert answer.rows[1].peak_reserved == 70 * MIB
    with pytest.raises(RequestError, match="or one of forward"):
        ask(recorder, scale=["backward=0.5"], phases={"forward": np.array([False, True])})


def leaking() -> tuple[Recorder, list[int]]:
    """Each step keeps 30 MiB of one line, and uses 20 MiB of another."""
    recorder, begins = Recorder(), []
    for step in range(5):
        begins.append(len(recorder.entries))
        recorder.malloc(100 + step, 30 * MIB, frames=[builders.frame("log", 17, "metrics.py")])
        recorder.malloc(step, 20 * MIB)
        recorder.free(step)
    return recorder, begins


def test_what_a_line_keeps_can_be_given_back_each_step() -> None:
    recorder, begins = leaking()
    answer = ask(recorder, free=["metrics.py:17"], steps=begins)
    assert answer.rows[0].peak_reserved == 170 * MIB
    assert answer.rows[1].setting == "recorded, metrics.py:17 freed each step"
    assert answer.rows[1].peak_reserved == 50 * MIB
    assert answer.rows[1].peak_allocated == 50 * MIB
    with pytest.raises(RequestError, match="steps of the program are not known"):
        ask(recorder, free=["metrics.py:17"])
