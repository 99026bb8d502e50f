"""Volumes, adapters with written-out attention, a recurrent layer: three recordings against torch's own peaks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.records import Plan
from oomscope.analysis.study import study_device
from oomscope.reading import load

FIXTURES = Path(__file__).parents[1] / "ledger" / "fixtures"
PEAKS = json.loads((FIXTURES / "later_peaks.json").read_text())
OTHERS = {"volumes3d": ("b3", "s112"), "lora": ("b6", "s640"), "lstm": ("b64", "s320")}


def shapes_of(program: str) -> dict[str, dict[str, int]]:
    shapes = {name: dict(one) for name, one in PEAKS[program]["shapes"].items() if name != "base"}
    return {
        name: {key: value for key, value in one.items() if key not in ("allocated", "reserved")}
        for name, one in shapes.items()
        if name not in OTHERS.get(program, ())
    }


@cache
def planned(program: str, recorded: tuple[str, ...]) -> Plan:
    files = [program, *(f"{program}.{name}" for name in recorded)]
    studies = [(file, study_device(load(FIXTURES / f"{file}.pickle.xz"), 0)) for file in files]
    return plan_of(studies, wanted=list(shapes_of(program).values()))


@pytest.mark.parametrize("program", ["lora", "lstm"])
def test_what_aligns_is_exact_also_where_sums_have_three_parts(program: str):
    """Logits of one token less beside quadratic scores; the reserve of a recurrent layer, with a constant."""
    for name, row in zip(shapes_of(program), planned(program, OTHERS[program]).predictions, strict=True):
        truth = PEAKS[program]["shapes"][name]
        assert row.peak_allocated.bytes == pytest.approx(truth["allocated"], rel=0.0005), name
        assert row.peak_reserved.bytes == pytest.approx(truth["reserved"], rel=0.0005), name


@pytest.mark.parametrize("recorded", [(), ("b3",), ("b3", "s112")])
def test_volumes_grow_with_the_cube_of_a_side(recorded: tuple[str, ...]):
    """Also where no recording varies it. At half the batch kernels take more than their share of what was recorded."""
    for name, row in zip(shapes_of("volumes3d"), planned("volumes3d", recorded).predictions, strict=True):
        truth = PEAKS["volumes3d"]["shapes"][name]
        assert row.peak_allocated.bytes == pytest.approx(truth["allocated"], rel=0.004), name
        far = 0.18 if name == "b1" else 0.015
        assert row.peak_reserved.bytes == pytest.approx(truth["reserved"], rel=far), name


@pytest.mark.parametrize("program", ["bert", "moe"])
def test_one_recording_tells_a_length_where_scores_are_told_by_their_softmax(program: str):
    for name, row in zip(shapes_of(program), planned(program, ()).predictions, strict=True):
        truth = PEAKS[program]["shapes"][name]
        assert row.peak_allocated.bytes == pytest.approx(truth["allocated"], rel=0.002), name
        assert row.peak_reserved.bytes == pytest.approx(truth["reserved"], rel=0.005), name


def test_what_need_not_depend_on_a_side_makes_the_range_wide():
    """The text beside the images grows with neither, and nothing in one recording says so."""
    for name, row in zip(shapes_of("twotower"), planned("twotower", ()).predictions, strict=True):
        truth = PEAKS["twotower"]["shapes"][name]["allocated"]
        assert row.peak_allocated.low <= truth <= row.peak_allocated.high, name
