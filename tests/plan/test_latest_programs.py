"""Convolutions, sparse gradients, attention that no name tells: real recordings against torch's own peaks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.records import Prediction
from oomscope.analysis.study import study_device
from oomscope.reading import load

FIXTURES = Path(__file__).parents[1] / "ledger" / "fixtures"
PEAKS = json.loads((FIXTURES / "latest_peaks.json").read_text())
CLICKS = ("b24576x20", "b16384x30")
SEGMENT = ("b12x320", "b8x384")


@cache
def predicted(program: str, others: tuple[str, ...]) -> dict[str, Prediction]:
    files = [program, *(f"{program}.{name}" for name in others)]
    studies = [(file, study_device(load(FIXTURES / f"{file}.pickle.xz"), 0)) for file in files]
    truths = {name: dict(one) for name, one in PEAKS[program]["shapes"].items() if name not in ("base", *others)}
    wanted = [{key: one[key] for key in one if key not in ("allocated", "reserved")} for one in truths.values()]
    return dict(zip(truths, plan_of(studies, wanted=wanted).predictions, strict=True))


@pytest.mark.parametrize(
    ("program", "others", "allocated", "reserved"),
    [
        ("clicks", CLICKS, 0.001, 0.052),
        ("clicks", CLICKS[1:], 0.001, 0.115),
        ("segment", SEGMENT, 0.022, 0.066),
        ("segment", SEGMENT[:1], 0.022, 0.062),
        ("segment", SEGMENT[1:], 0.022, 0.066),
        ("vnet", (), 0.026, 0.083),
        ("grouped", (), 0.008, 0.012),
        ("conformer", (), 0.028, 0.061),
        ("vocoder", (), 0.012, 0.029),
        ("mmdit", (), 0.037, 0.045),
    ],
)
def test_peaks_are_as_near_as_the_note_says_and_in_range(
    program: str, others: tuple[str, ...], allocated: float, reserved: float
):
    for name, row in predicted(program, others).items():
        truth = PEAKS[program]["shapes"][name]
        assert row.peak_allocated.bytes == pytest.approx(truth["allocated"], rel=allocated), name
        assert row.peak_reserved.bytes == pytest.approx(truth["reserved"], rel=reserved), name
        assert row.peak_allocated.low <= truth["allocated"] <= row.peak_allocated.high, name
        assert row.peak_reserved.low <= truth["reserved"] <= row.peak_reserved.high, name


def test_no_range_leaves_out_that_some_rows_are_drawn_more_often():
    """Twice as many draws need not mean that a table is nearly used up, as these are."""
    far = predicted("clicks", CLICKS)["b65536x20"].peak_allocated
    assert far.high > 1.05 * far.bytes
