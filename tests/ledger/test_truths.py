"""The same programs really run with each remedy: torch's own peaks against those that the ledger finds."""

from __future__ import annotations

import json
from functools import cache
from statistics import median
from typing import Any

import pytest

from oomscope.analysis.ledger import ledger_of
from oomscope.analysis.ledger.records import Ledger
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.reading import load
from tests.shared import SHARED

PLAN = SHARED / "plan"
pytestmark = pytest.mark.skipif(not PLAN.is_dir(), reason=f"runs with remedies are not here ({PLAN})")

RUNS = [
    ("llama", "checkpoint", None, "ckpt"),
    ("llama", "autocast", None, "amp"),
    ("llama", "bf16", None, "bf16"),
    ("llama", "sgd", None, "sgd"),
    ("llama", "sgd_momentum", None, "sgdm"),
    ("llama", "adafactor", None, "adafactor"),
    ("llama", "accumulate", 2, "accum2"),
    ("llama", "accumulate", 4, "accum4"),
    ("llama", "fused_optimizer", None, "fused"),
    ("resnet", "autocast", None, "amp"),
    ("resnet", "sgd", None, "sgd"),
    ("resnet", "sgd_momentum", None, "sgdm"),
    ("resnet", "adafactor", None, "adafactor"),
    ("resnet", "accumulate", 2, "accum2"),
    ("resnet", "accumulate", 4, "accum4"),
    ("resnet", "no_grad", None, "nograd"),
]


@cache
def truths() -> dict[str, Any]:
    return json.loads((PLAN / "truths.json").read_text())


@cache
def base(family: str) -> DeviceStudy:
    return study_device(load(PLAN / f"{family}.base.pickle.xz"), 0)


@cache
def answer(family: str, slug: str, value: int | None) -> Ledger:
    return ledger_of(base(family), [(slug, value)])


def error(family: str, slug: str, value: int | None, truth: str) -> float:
    found = answer(family, slug, value).rows[0].peak_allocated.bytes
    return abs(found / truths()[f"{family}.{truth}"]["peak_allocated"] - 1)


@pytest.mark.parametrize(("family", "slug", "value", "truth"), RUNS)
def test_the_peak_is_near_the_truth_which_lies_in_the_range(family: str, slug: str, value: int | None, truth: str):
    row, peak = answer(family, slug, value).rows[0], truths()[f"{family}.{truth}"]["peak_allocated"]
    assert row.peak_allocated.bytes == pytest.approx(peak, rel=0.03)
    assert row.peak_allocated.low <= peak <= row.peak_allocated.high
    recorded = truths()[f"{family}.base"]["peak_allocated"]
    assert row.peak_allocated.high - row.peak_allocated.low <= 0.2 * recorded
    assert row.saves_bytes == recorded - row.peak_allocated.bytes


def test_the_median_error_is_below_half_a_percent():
    assert median(error(*run) for run in RUNS) < 0.005


@pytest.mark.parametrize("family", ["llama", "resnet"])
def test_what_the_program_does_already_is_not_listed(family: str):
    slugs = {row.slug for row in ledger_of(base(family)).rows}
    assert not slugs & {"set_to_none", "no_grad", "bound_holder", "raise_cap"}


@pytest.mark.parametrize("family", ["llama", "resnet"])
def test_no_range_is_wider_than_a_fifth_of_the_peak(family: str):
    ledger = ledger_of(base(family))
    assert ledger.peak_allocated == truths()[f"{family}.base"]["peak_allocated"]
    for row in ledger.rows:
        assert row.peak_allocated.low <= row.peak_allocated.bytes <= row.peak_allocated.high
        assert row.peak_allocated.high - row.peak_allocated.low <= 0.2 * ledger.peak_allocated
