"""A detector whose loss goes through the images of a batch one by one: the shapes of one more batch, and one less."""

from __future__ import annotations

import json

import numpy as np
import pytest

from oomscope.allocator.program import Op
from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.alignment import UNFRAMED
from oomscope.analysis.plan.loops import by_items
from oomscope.analysis.plan.recordings import Recording, StackKeys, made_ready
from tests.ledger.rounds import FIXTURES, study

pytestmark = pytest.mark.thorough

SHAPES = {"boxes": {"batch": 16, "side": 512}, "boxes.b24": {"batch": 24, "side": 512}}


def recordings() -> list[Recording]:
    keys = StackKeys()
    return [made_ready(name, study(name), shape, keys) for name, shape in SHAPES.items()]


def test_what_a_loop_keeps_of_each_image_grows_by_its_number():
    peaks = json.loads((FIXTURES / "seventeenth_peaks.json").read_text())["boxes"]["shapes"]
    wanted = [{"batch": peaks[name]["batch"], "side": peaks[name]["side"]} for name in ("b8", "b56")]
    found = plan_of([(name, study(name)) for name in SHAPES], at=list(SHAPES.values()), wanted=wanted).predictions
    for name, row in zip(("b8", "b56"), found, strict=True):
        true = peaks[name]
        assert abs(row.peak_allocated.bytes / true["allocated"] - 1) < 0.005
        assert row.peak_allocated.low <= true["allocated"] <= row.peak_allocated.high
        assert abs(row.peak_reserved.bytes / true["reserved"] - 1) < 0.015


def test_only_what_is_there_together_is_of_such_a_loop():
    one, other = recordings()
    counted, images = 0, 24 / 16
    for unit in one.units:
        for like in (another for another in other.units if another.step == unit.step):
            times = by_items(one, unit, other, like)
            assert set(np.unique(times).tolist()) <= {1.0, images}
            assert (times[one.key[unit.begin : unit.end] == UNFRAMED] == 1).all()
            counted += int((times != 1).sum())
    assert counted > 1000
    assert counted < 0.5 * int((one.program.op == Op.MALLOC).sum())


def test_recordings_of_one_batch_have_no_such_loops():
    (one, _) = recordings()
    assert all((by_items(one, unit, one, unit) == 1).all() for unit in one.units)


def test_twice_as_far_along_what_is_never_varied_nothing_is_said_to_fit():
    """Scores of a text beside an image, or targets that grow with frames, are told by no single recording."""
    base = {"batch": 8, "length": 512}
    wanted = [{**base, "length": length} for length in (704, 1024)] + [{**base, "batch": 32}]
    found = plan_of([("spans", study("spans"))], at=[base], wanted=wanted, limits=[1 << 40])
    assert [row.cards[0].fits for row in found.predictions] == [True, None, True]
    assert ["plan.too_far" in {one.code for one in row.notes} for row in found.predictions] == [False, True, False]
    longest = next(one for one in found.largest if one.parameter == "length")
    assert longest.bound
    assert longest.value is not None
    assert base["length"] < longest.value < 2 * base["length"]
