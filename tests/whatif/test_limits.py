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


def capped_run() -> Recorder:
    """Two requests for 60 MiB under half of a card of 200 MiB, of which the second is refused."""
    recorder = Recorder("per_process_memory_fraction:0.5", limit=Limit(cap=100 * MIB, device_total=200 * MIB))
    for name in range(2):
        recorder.malloc(name, 60 * MIB)
    return recorder


CAPPED_CARD = {"devices": [{"device": 0, "total": 200 * MIB, "cap": 100 * MIB}]}


def test_a_recorded_fraction_does_not_hold_on_another_card() -> None:
    rows = whatif(capped_run().snapshot(oomscope=CAPPED_CARD), 0, settings=[EXPANDABLE], gpu=160 * MIB).rows
    assert [row.limit for row in rows] == [160 * MIB] * 2
    assert [row.oom for row in rows] == [False] * 2
    assert "the recorded cap of 100 MiB does not apply" in notes_text(rows[0])


def test_a_recorded_fraction_holds_on_another_card_where_it_is_asked_for() -> None:
    asked = ["per_process_memory_fraction:0.5"]
    recorded, named = whatif(capped_run().snapshot(oomscope=CAPPED_CARD), 0, settings=asked, gpu=160 * MIB).rows
    assert (recorded.limit, named.limit) == (160 * MIB, 80 * MIB)
    assert (recorded.oom, named.oom) == (False, True)


def test_a_limit_replaces_the_recorded_cap_in_every_row() -> None:
    for settings in (None, [EXPANDABLE]):
        rows = whatif(capped_run().snapshot(oomscope=CAPPED_CARD), 0, settings=settings, limit=150 * MIB).rows
        assert {row.limit for row in rows} == {150 * MIB}
        assert {row.oom for row in rows} == {False}


def test_the_recorded_cap_holds_in_every_row_where_nothing_replaces_it() -> None:
    rows = whatif(capped_run().snapshot(oomscope=CAPPED_CARD), 0, settings=[EXPANDABLE, "max_split_size_mb:32"]).rows
    assert {row.limit for row in rows} == {100 * MIB}
    assert {row.oom for row in rows} == {True}


def test_another_fraction_replaces_the_recorded_one_on_the_same_card() -> None:
    asked = ["per_process_memory_fraction:0.8"]
    row = whatif(capped_run().snapshot(oomscope=CAPPED_CARD), 0, settings=asked).rows[1]
    assert (row.limit, row.oom) == (160 * MIB, False)


def test_a_limit_beyond_what_the_card_could_give_is_bounded_by_that() -> None:
    recorder = Recorder(limit=Limit(capacity=100 * MIB))
    for name in range(2):
        recorder.malloc(name, 60 * MIB)
    row = whatif(recorder.snapshot(), 0, settings=[], limit=1000 * MIB).rows[0]
    assert row.limit == 100 * MIB
    assert row.oom


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
