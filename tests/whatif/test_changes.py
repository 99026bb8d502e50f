"""Changed programs: their rows, and what is said to be changed."""

from __future__ import annotations

from oomscope.analysis.whatif import EXPANDABLE, whatif
from tests import builders
from tests.whatif.recorder import Recorder

MIB = 1 << 20
LOG = [builders.frame("log", 17, "/workspace/metrics.py")]


def three(conf: str = "") -> Recorder:
    recorder = Recorder(conf)
    for name in range(3):
        recorder.malloc(name, 30 * MIB, frames=LOG)
    return recorder


def test_a_run_recorded_with_expandable_segments_has_one_changed_row() -> None:
    rows = whatif(three(EXPANDABLE).snapshot(), 0, scale=["metrics.py:17=2"]).rows
    assert [row.setting for row in rows] == ["recorded", "recorded, metrics.py:17 × 2"]


def test_the_settings_of_changed_rows_stand_beside_the_recorded_ones() -> None:
    row = whatif(three("roundup_power2_divisions:4").snapshot(), 0, scale=["metrics.py:17=2"]).rows[2]
    assert "the rest as recorded (roundup_power2_divisions:4)" in row.note


def test_a_changed_row_says_which_setting_is_too_new() -> None:
    row = whatif(three().snapshot(), 0, scale=["metrics.py:17=2"], settings=["large_segment_size_mb:40"]).rows[-1]
    assert "large_segment_size needs torch 2.11" in row.note


def test_only_what_outlives_its_step_counts_as_given_back() -> None:
    recorder = three()
    begins = [0, len(recorder.entries)]
    recorder.malloc(5, 30 * MIB, frames=LOG)
    recorder.free(5)
    row = whatif(recorder.snapshot(), 0, free=["metrics.py"], steps=begins).rows[1]
    assert "3 allocations of metrics.py given back at the end of their step" in row.note
