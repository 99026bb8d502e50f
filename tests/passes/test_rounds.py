"""What a report counts in: the passes of the loop that failed, or the steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import oomscope
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.passes.rounds import find_passes
from oomscope.analysis.verdict.records import Verdict
from oomscope.wording.loops import pass_word, which_is_which
from tests.verdict.known import PROGRAMS, found

VALIDATION = PROGRAMS / "yolo_val.pickle.xz"


def failed(path: Path) -> tuple[DeviceFindings, Verdict, int]:
    device = found(path, with_key=True)
    assert device.oom is not None
    return device, device.oom.verdict, device.oom.entry


def test_a_validation_is_told_by_its_own_passes_and_not_by_the_steps_of_the_training_before():
    device, verdict, entry = failed(VALIDATION)
    assert verdict.failing_pass is not None
    assert device.steps.by_optimizer
    assert [step.name for step in device.rounds.steps] == [str(number) for number in range(1, 13)]
    assert device.rounds.steps[-1].begin <= entry <= device.rounds.steps[-1].end
    assert device.rounds.boundaries[0] > device.steps.boundaries[-1]
    assert pass_word(device) == ("pass", "passes")
    assert which_is_which(device) == "Here a pass is one round of the loop in __call__ (yolo_val.py:85)."


def test_passes_of_earlier_runs_count_where_the_headline_counts_those():
    device, verdict, entry = failed(VALIDATION)
    assert verdict.failing_pass is not None
    later = replace(verdict.failing_pass, before=20)
    passes = find_passes(device.study, entry, later, ())
    assert passes is not None
    assert (passes.steps[0].name, passes.steps[-1].name) == ("21", "32")
    again = find_passes(device.study, entry, later, (later.completed,))
    assert again is not None
    assert again.steps[0].name == "1"


@pytest.mark.parametrize("told", [(3,), (None,), (11, 3)])
def test_there_is_no_third_count_where_the_headline_counts_another_loop(told: tuple[int | None, ...]):
    device, verdict, entry = failed(VALIDATION)
    assert find_passes(device.study, entry, verdict.failing_pass, told) is None


def test_without_a_failing_pass_the_steps_are_told():
    device, _, entry = failed(VALIDATION)
    assert find_passes(device.study, entry, None, ()) is None


def test_what_the_program_has_marked_as_its_steps_is_not_replaced(monkeypatch: pytest.MonkeyPatch):
    snapshot = oomscope.load(VALIDATION)
    device = oomscope.analyze(snapshot, whatif=False).devices[0]
    assert device.oom is not None
    marked = replace(device.study.steps, by_optimizer=False, source="recorded")
    monkeypatch.setitem(vars(device.study), "steps", marked)
    assert find_passes(device.study, device.oom.entry, device.oom.verdict.failing_pass, ()) is None


def test_steps_of_a_loop_end_with_it():
    device, _, entry = failed(PROGRAMS / "ct_patches.pickle.xz")
    assert device.steps.count == 30
    assert device.steps.steps[-1].end < entry
    assert device.passes is None
