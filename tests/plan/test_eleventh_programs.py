"""A transformer whose windows do not divide every image, which it pads at each stage."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.plan.growth.reductions import filled_by
from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.requests.window_stages import window_stages
from tests.plan.peaks import Round, study

ROUND = Round("eleventh")
WIDTHS = [28, 56, 112, 224]


@pytest.mark.parametrize("others", [("b96", "side288"), ("side288",)])
def test_sides_that_windows_do_not_divide_from_one_that_they_do_and_one_that_they_do_not(others: tuple[str, ...]):
    ROUND.check("shifted", others, 0.0005, 0.06)


def test_the_same_from_one_recording_whose_tables_tell_the_windows():
    ROUND.check("shifted", (), 0.007, 0.05)


def test_each_stage_has_windows_twice_as_wide():
    recording = made_ready("base", study("shifted"), {"batch": 64, "side": 224}, StackKeys())
    found = window_stages(recording)
    assert found is not None
    assert np.unique(found.width).tolist() == WIDTHS
    widest = found.width == WIDTHS[-1]
    assert np.unique(found.padded(160)[widest]).tolist() == [pytest.approx((224 / 160) ** 2)]
    assert (found.padded(448) == 1).all()


def test_a_recording_that_pads_does_not_tell_how_wide_its_windows_are():
    assert (
        window_stages(made_ready("side288", study("shifted.side288"), {"batch": 64, "side": 288}, StackKeys())) is None
    )
    assert window_stages(made_ready("deeplab", study("deeplab"), {"batch": 16, "side": 256}, StackKeys())) is None


def test_a_reduction_that_fills_a_card_of_which_the_recording_has_no_name():
    recording = made_ready("base", study("retriever"), {"batch": 16, "seq": 192}, StackKeys())
    full = (recording.program.size == 132 << 20) & (filled_by(recording) > 0)
    assert full.any()
    assert (filled_by(recording)[full] == 2 * 16 * 2 * 192 * 3072 * 4).all(), "twice the gradient that it adds up"
    ROUND.check("retriever", ("b24",), 0.007, 0.02)
