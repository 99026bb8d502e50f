"""Limits and cards: which of them can be answered, and what is left under them or lacks."""

from __future__ import annotations

import oomscope
from oomscope.analysis.whatif import EXPANDABLE, whatif
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
