"""Verdicts, drivers, categories and figures on programs that went wrong on purpose; see captures/README.md."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oomscope
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES

FOLDER = Path(__file__).parent / "captures"
TRUTHS: dict[str, dict[str, Any]] = json.loads((FOLDER / "truths.json").read_text())
FAILED = sorted(name for name, truth in TRUTHS.items() if truth["cause"])
UNKNOWABLE = {"outside"}
"""A bare snapshot does not hold the size of the card."""


@cache
def found(name: str) -> DeviceFindings:
    findings = oomscope.analyze(oomscope.load(FOLDER / f"{name}.pickle.xz"), whatif=False)
    assert findings.main is not None
    return findings.main


@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_usage_and_peaks_are_torchs_own(name: str) -> None:
    device, stats = found(name), TRUTHS[name]["stats"]
    assert device.peak is not None
    for counter in ("allocated", "active", "reserved"):
        assert getattr(device.usage, counter) == stats[f"{counter}_bytes.all.current"]
        assert getattr(device.peak, counter) == stats[f"{counter}_bytes.all.peak"]
    assert device.usage.requested == stats["requested_bytes.all.current"]


@pytest.mark.parametrize("name", FAILED)
def test_the_cause_is_right_or_not_said_with_high_confidence(name: str) -> None:
    oom = found(name).oom
    assert oom is not None
    if name in UNKNOWABLE:
        assert oom.verdict.confidence != "high"
        assert any(unknown.code == "verdict.unknown.card" for unknown in oom.verdict.cannot_know)
    else:
        assert oom.verdict.cause == TRUTHS[name]["cause"]


@pytest.mark.parametrize("name", sorted(name for name in FAILED if TRUTHS[name]["driver"]))
def test_the_driver_stands_first_or_second(name: str) -> None:
    oom = found(name).oom
    assert oom is not None
    assert TRUTHS[name]["driver"] in [driver.slug for driver in oom.verdict.drivers[:2]]


@pytest.mark.parametrize("name", sorted(name for name, truth in TRUTHS.items() if truth["labels"]))
def test_labelled_bytes_are_of_their_category(name: str) -> None:
    device = found(name)
    history = device.history
    live = np.flatnonzero(history.lifetimes.block >= 0)
    row_at = dict(zip(history.lifetimes.address[live].tolist(), live.tolist(), strict=True))
    assert device.category_of is not None
    right = total = 0
    for address, category in TRUTHS[name]["labels"]:
        if address in row_at:
            size = int(history.size[row_at[address]])
            total += size
            right += size * (CATEGORIES[device.category_of[row_at[address]]] == category)
    assert total > 0
    assert right >= 0.97 * total


def test_a_healthy_run_grows_nowhere() -> None:
    assert found("healthy_lstm").growth == ()
