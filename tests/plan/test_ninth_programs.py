"""Experts, pictures, clouds of points, ratings: recordings against real peaks."""

from __future__ import annotations

import pytest

from oomscope.analysis.plan import plan_of
from tests.plan.peaks import Round, study

ROUND = Round("ninth")


@pytest.mark.parametrize(
    ("program", "others", "allocated", "reserved"),
    [("experts", (), 0.002, 0.01), ("pictures", (), 0.001, 0.04), ("ratings", ("b4096x150",), 0.001, 0.001)],
)
def test_peaks_are_as_near_as_the_note_says_and_in_range(
    program: str, others: tuple[str, ...], allocated: float, reserved: float
):
    ROUND.check(program, others, allocated, reserved)


def test_distances_between_points_are_known_from_one_recording_though_not_what_is_reserved_for_them():
    for name, row in ROUND.predicted("points", ()).items():
        truth = ROUND._peaks["points"]["shapes"][name]
        assert row.peak_allocated.bytes == pytest.approx(truth["allocated"], rel=0.01), name
        assert row.peak_allocated.low <= truth["allocated"] <= row.peak_allocated.high, name


def test_one_run_of_several_shapes_tells_how_much_goes_to_experts_although_chance_moves_each():
    shapes = {name: ROUND._peaks["experts"]["shapes"][name] for name in ("b4x512", "b4x1024", "b20x256", "b16x512")}
    wanted = [{"batch": one["batch"], "seq": one["seq"]} for one in shapes.values()]
    for truth, row in zip(
        shapes.values(), plan_of([("several", study("experts.several"))], wanted=wanted).predictions, strict=True
    ):
        assert row.peak_allocated.bytes == pytest.approx(truth["allocated"], rel=0.003)
        assert row.peak_allocated.low <= truth["allocated"] <= row.peak_allocated.high
