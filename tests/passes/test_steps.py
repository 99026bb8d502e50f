"""Steps that the recording noted by itself are those of the optimizer, and counted from 1 as passes are."""

from __future__ import annotations

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.passes.steps import recorded_names
from oomscope.model.recorded import RecordedStep
from oomscope.reading import load
from tests.samples import bundled_path


def rows(*spans: tuple[str, int, int | None]) -> list[RecordedStep]:
    return [RecordedStep(name, begin, end) for name, begin, end in spans]


def test_steps_that_begin_where_the_last_one_ended_are_those_of_the_optimizer():
    assert recorded_names(rows(("0", 5, 5), ("1", 5, 9), ("2", 9, 14))) == (["1", "2", "3"], True)
    assert recorded_names(rows(("0", 5, 5))) == (["1"], True)
    assert recorded_names(rows(("41", 9, 14), ("42", 14, 20))) == (["42", "43"], True)


@pytest.mark.parametrize(
    "spans",
    [
        (),
        (("0", 5, 9),),
        (("0", 5, 9), ("1", 10, 14)),
        (("0", 5, 9), ("1", 9, None)),
        (("warm-up", 5, 9), ("1", 9, 14)),
    ],
)
def test_steps_that_the_program_announced_keep_their_names(spans: tuple[tuple[str, int, int | None], ...]):
    assert recorded_names(rows(*spans)) == ([name for name, *_ in spans], False)


def test_the_last_optimizer_step_has_the_number_of_all_that_ended():
    snapshot = load(bundled_path("oom_activations"))
    device = analyze(snapshot, whatif=False).main
    assert device is not None
    assert device.steps.by_optimizer
    assert int(device.steps.steps[-1].name) == len(snapshot.recorded.steps) == 5
