"""A run that failed beside one that came to its end: each was made in a folder of its own."""

from __future__ import annotations

import pytest

from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.recordings import _moved
from oomscope.analysis.plan.shapes import parse_shapes
from oomscope.analysis.study import study_device
from oomscope.errors import RequestError
from oomscope.reading import load
from tests.plan.peaks import FIXTURES

GIB = 1 << 30


def video(frames: int):
    return f"video_{frames}", study_device(load(FIXTURES / f"video_{frames}.pickle.xz"), 0)


def test_a_run_that_failed_in_its_first_step_takes_nothing_away():
    """The whole one ran at 132 frames under a cap of 9 GiB; 136 were refused, and 240 in the first forward."""
    both = plan_of(
        [video(132), video(240)], at=[{"frames": 132}, {"frames": 240}], wanted=parse_shapes("frames=132..136..4")
    )
    assert [one.cards[0].fits for one in both.predictions] == [True, False]
    assert [one.values["file"] for one in both.notes if one.code == "plan.failed_too_early"] == ["video_240"]
    alone = plan_of([video(132)], at=[{"frames": 132}], wanted=parse_shapes("frames=132..136..4"))
    assert both.predictions == alone.predictions


def test_what_a_failed_run_would_have_told_is_said_where_nothing_else_tells_it():
    with pytest.raises(RequestError, match="video_240 failed too early to tell how the peak depends on clips"):
        plan_of([video(132), video(240)], at=[{"clips": 132}, {"clips": 240}], wanted=[{"clips": 140}])


@pytest.mark.parametrize(
    ("own", "known", "moved"),
    [
        ({"/jobs/17/main.py", "/jobs/17/net/unet.py"}, {"/jobs/12/main.py"}, ("/jobs/17", "/jobs/12")),
        ({"/jobs/17/main.py", "/opt/start.py"}, {"/jobs/12/main.py", "/opt/start.py"}, ("/jobs/17", "/jobs/12")),
        ({"/jobs/17/main.py"}, {"/jobs/17/main.py"}, None),
        ({"/jobs/17/train.py"}, {"/jobs/12/main.py"}, None),
        (set(), {"/jobs/12/main.py"}, None),
    ],
)
def test_one_program_in_two_folders_is_one(own: set[str], known: set[str], moved: tuple[str, str] | None):
    assert _moved(own, known) == moved


def test_a_range_may_have_a_step():
    assert parse_shapes("batch=8..32..8") == [{"batch": 8}, {"batch": 16}, {"batch": 24}, {"batch": 32}]
    with pytest.raises(RequestError, match="is not a whole number above 0"):
        parse_shapes("batch=8..32..0")
