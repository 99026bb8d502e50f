"""Real recordings: every combination of those that are there, against torch's own peaks at all other shapes."""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.records import Prediction
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.reading import load
from tests.shared import SHARED

PLAN = SHARED / "plan"
pytestmark = pytest.mark.skipif(not PLAN.is_dir(), reason=f"the recordings at several shapes are not here ({PLAN})")

RECORDED = {"llama": ("llama.base", "llama.b6", "llama.s768"), "resnet": ("resnet.base", "resnet.b48")}
SHAPES = {
    "llama": ("base", "b6", "b8", "b12", "s768", "s1024", "b8s1024"),
    "resnet": ("base", "b16", "b48", "b64", "b96"),
}
COMBINATIONS = [
    (family, files)
    for family, names in RECORDED.items()
    for count in range(1, len(names) + 1)
    for files in combinations(names, count)
]


@cache
def truths() -> dict[str, Any]:
    return json.loads((PLAN / "truths.json").read_text())


@cache
def recording(name: str) -> DeviceStudy:
    return study_device(load(PLAN / f"{name}.pickle.xz"), 0)


def shape_of(name: str) -> dict[str, int]:
    words = truths()[name]["args"]
    found = {"batch": int(words[words.index("--batch") + 1])}
    return {**found, "seq": int(words[words.index("--seq") + 1])} if "--seq" in words else found


def predicted(family: str, files: tuple[str, ...]) -> list[tuple[str, Prediction]]:
    names = [f"{family}.{name}" for name in SHAPES[family]]
    answer = plan_of(
        [(name, recording(name)) for name in files],
        at=[shape_of(name) for name in files],
        wanted=[shape_of(name) for name in names],
    )
    return [(name, row) for name, row in zip(names, answer.predictions, strict=True) if name not in files]


@pytest.mark.parametrize(("family", "files"), COMBINATIONS, ids=lambda value: str(value))
def test_peaks_are_within_what_is_promised_and_within_their_range(family: str, files: tuple[str, ...]):
    allocated, reserved = (0.002, 0.015) if family == "llama" else (0.03, 0.05)
    for name, row in predicted(family, files):
        truth = truths()[name]
        assert row.peak_allocated.bytes == pytest.approx(truth["peak_allocated"], rel=allocated), name
        assert row.peak_reserved.bytes == pytest.approx(truth["peak_reserved"], rel=reserved), name
        assert row.peak_allocated.low <= truth["peak_allocated"] <= row.peak_allocated.high, name
        assert row.peak_reserved.low <= truth["peak_reserved"] <= row.peak_reserved.high, name


@pytest.mark.parametrize(("family", "files"), [COMBINATIONS[6], COMBINATIONS[-1]], ids=["llama", "resnet"])
def test_nothing_fits_that_did_not(family: str, files: tuple[str, ...]):
    studies = [(one, recording(one)) for one in files]
    for name in [f"{family}.{name}" for name in SHAPES[family]]:
        # A card that has a little less than what was allocated cannot have served it.
        card = truths()[name]["peak_allocated"] - (1 << 20)
        answer = plan_of(studies, at=[shape_of(one) for one in files], wanted=[shape_of(name)], gpus=[str(card)])
        assert answer.predictions[0].cards[0].fits is not True, name
        batch = next(one.value for one in answer.largest if one.parameter == "batch")
        assert (batch or 0) < shape_of(name)["batch"], name
