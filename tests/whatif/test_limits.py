"""Limits and cards: which of them can be answered, and what is left under them or lacks."""

from __future__ import annotations

import pytest

import oomscope
from oomscope.allocator.limits import Limit
from oomscope.analysis.whatif import EXPANDABLE, whatif
from oomscope.wording.whatif_table import notes_text
from tests.said import reason_text
from tests.whatif.recorder import Recorder

MIB = 1 << 20


def one_request(size: int = 22 * MIB, conf: str = "") -> Recorder:
    recorder = Recorder(conf)
    recorder.malloc(0, size)
    return recorder


def test_settings_that_torch_would_refuse_beside_the_recorded_ones_are_not_tried() -> None:
    snapshot = one_request(5 * MIB, "large_segment_size_mb:256").snapshot()
    settings = [row.setting for row in oomscope.analyze(snapshot).whatif[0].rows]
    assert "max_split_size_mb:128" not in settings
    assert "max_split_size_mb:256" in settings


def test_a_page_that_the_card_has_no_room_for_is_what_lacks() -> None:
    # 22 MiB take two pages of 20 MiB; the card has room for one and a half.
    row = whatif(one_request().snapshot(), 0, settings=[EXPANDABLE], gpu=30 * MIB).rows[1]
    assert row.oom
    assert row.headroom == -10 * MIB


def test_a_request_that_the_cap_refuses_as_a_whole_is_what_lacks() -> None:
    for row in whatif(one_request().snapshot(), 0, settings=[EXPANDABLE], limit=20 * MIB).rows:
        assert row.oom
        assert row.headroom == -2 * MIB


def test_a_run_that_lives_lacks_nothing() -> None:
    # The cap is compared with 22 MiB, and 40 MiB are mapped.
    row = whatif(one_request().snapshot(), 0, settings=[EXPANDABLE], limit=30 * MIB).rows[1]
    assert row.oom is False
    assert row.peak_reserved == 40 * MIB
    assert row.headroom == 0


@pytest.mark.parametrize("question", [{"gpu": 20 * MIB}, {"limit": 20 * MIB}])
def test_less_than_a_late_recording_found_reserved_is_not_answered(question: dict[str, int]) -> None:
    recorder = one_request(60 * MIB)
    recorder.free(0)
    recorder.malloc(1, 30 * MIB)
    recorder.forget()
    recorder.malloc(2, 20 * MIB)
    row = whatif(recorder.snapshot(), 0, settings=[], **question).rows[0]  # type: ignore[arg-type]
    assert (row.oom, row.peak_reserved, row.headroom) == (None, None, None)
    assert "60.0 MiB was reserved when the recording began, more than the limit" in notes_text(row)


CARD = {"devices": [{"device": 0, "total": 1000 * MIB}]}


@pytest.mark.parametrize(
    ("fraction", "limit", "certain"), [("0.1", 100, True), ("0.17", 170, True), ("0.2", 180, False)]
)
def test_a_fraction_bounds_both_ends_of_an_uncertain_cap(fraction: str, limit: int, certain: bool) -> None:
    recorder = Recorder(limit=Limit(cap=200 * MIB))
    for name in range(4):
        recorder.malloc(name, 60 * MIB)
    setting = f"per_process_memory_fraction:{fraction}"
    row = whatif(recorder.snapshot(oomscope=CARD), 0, settings=[setting]).rows[1]
    assert row.limit == limit * MIB
    assert row.oom
    assert ("the recorded cap is known only to lie between" not in notes_text(row)) is certain


def test_a_recorded_fraction_holds_on_another_card_too() -> None:
    recorder = Recorder("per_process_memory_fraction:0.5")
    for name in range(2):
        recorder.malloc(name, 60 * MIB)
    rows = whatif(recorder.snapshot(), 0, gpu=200 * MIB).rows
    assert {row.limit for row in rows} == {100 * MIB}
    assert rows[0].oom


def test_garbage_collection_without_a_cap_is_said_to_do_nothing() -> None:
    setting = "garbage_collection_threshold:0.5"
    note = "garbage_collection_threshold has no effect without a cap (--limit)"
    assert note in notes_text(whatif(one_request().snapshot(), 0, settings=[setting], gpu=1 << 30).rows[1])
    assert note not in notes_text(whatif(one_request().snapshot(), 0, settings=[setting], limit=1 << 30).rows[1])


def test_the_rows_of_a_recording_that_cannot_be_replayed_have_one_limit() -> None:
    recorder = one_request()
    recorder.entries[-1]["addr"] += 512
    rows = whatif(recorder.snapshot(), 0, settings=[EXPANDABLE], limit=30 * MIB).rows
    assert len({row.limit for row in rows}) == 1


def test_a_late_recording_answers_what_its_self_check_says() -> None:
    recorder = one_request(60 * MIB)
    recorder.free(0)
    recorder.forget()
    recorder.malloc(1, 30 * MIB)
    recorder.free(1)
    recorder.malloc(2, 30 * MIB)
    answer = whatif(recorder.snapshot(), 0, steps=[2])
    answered = "only the recorded setting, with or without calls of empty_cache, and expandable segments are answered"
    assert answered in reason_text(answer.self_check)
    settings = [row.setting for row in answer.rows if row.peak_reserved is not None]
    assert settings[:3] == ["recorded", EXPANDABLE, "empty_cache after each step"]
