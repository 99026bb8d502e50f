"""A detector, an autoencoder with a critic, state spaces, a radiance field, preferences: against torch's own peaks."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.plan.growth.reductions import filled_by, made_to_add_up
from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.requests.hints import hints
from tests.plan.peaks import Round, study

pytestmark = pytest.mark.thorough

ROUND = Round("newest")
RAYS = ("b3072x64", "b2048x96")


@pytest.mark.parametrize(
    ("program", "others", "allocated", "reserved"),
    [
        ("nerf", RAYS, 0.001, 0.001),
        ("nerf", RAYS[:1], 0.001, 0.001),
        ("nerf", RAYS[1:], 0.001, 0.001),
        ("nerf", (), 0.001, 0.001),
        ("detector", (), 0.003, 0.07),
        ("vae", (), 0.009, 0.037),
        ("ssm", (), 0.005, 0.057),
        ("preference", (), 0.002, 0.003),
    ],
)
def test_peaks_are_as_near_as_the_note_says_and_in_range(
    program: str, others: tuple[str, ...], allocated: float, reserved: float
):
    ROUND.check(program, others, allocated, reserved)


def test_a_reduction_that_fills_the_card_takes_no_more_for_more_rays():
    recordings = [made_ready(file, study(file), None, StackKeys()) for file in ("nerf", "nerf.b3072x64")]
    full = [made_to_add_up(one.program) & (one.program.size == 132 << 20) for one in recordings]
    assert [int(np.count_nonzero(rows)) for rows in full] == [92, 96]
    told = hints(recordings[0], ("batch",))
    assert set(told.degree[full[0], 0].tolist()) == {0}
    assert set(told.low[full[0], 0].tolist()) == {1}, "for fewer rays it may fall in proportion"
    assert told.filled_by[full[0]].min() == 2 * 2048 * 64 * 256 * 4, "twice what it adds up of the smaller network"


def test_sums_that_do_not_divide_what_a_card_runs_at_once_leave_a_part_of_it_idle():
    detector = made_ready("detector", study("detector"), None, StackKeys())
    full = filled_by(detector) > 0
    assert set(detector.program.size[full].tolist()) == {132 * 16 // 6 * 128 * 4 * 720}, "of 720 channels"
