"""Block sizes are found at once or block by block, which must come to the same."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.history import device_history, recorded_config, sizes
from oomscope.model import Snapshot
from tests.samples import SAMPLES, sample
from tests.shared import captures, needs_shared, shared_snapshot

BY_BLOCK = {"ring_wrapped", "late_start"}
"""Recorded in part: what was there before them can only be followed."""


def both_ways(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each device's sizes were found at once; they are the same where they are found block by block."""
    found: list[bool] = []
    at_once = sizes._at_once

    def noted(*arguments):
        answer = at_once(*arguments)
        found.append(answer is not None)
        return answer

    for device in snapshot.devices:
        config = recorded_config(snapshot, device)
        with monkeypatch.context() as patch:
            patch.setattr(sizes, "_at_once", noted)
            quick = device_history(device, config)
            patch.setattr(sizes, "_at_once", lambda *_: None)
            thorough = device_history(device, config)
        assert np.array_equal(quick.size, thorough.size)
        assert np.array_equal(quick.slack, thorough.slack)
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_sizes_of_samples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both_ways(sample(name), monkeypatch)


@needs_shared
@pytest.mark.parametrize("name", [*captures(), "big_history"])
def test_sizes_of_captures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = both_ways(shared_snapshot(name), monkeypatch)
    if name in BY_BLOCK:
        assert not any(found)
    if name == "big_history":
        assert all(found)


def test_too_many_looks_are_left_to_following(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "_MOST_LOOKS", 0)
    assert not any(both_ways(sample("oom_fragmentation"), monkeypatch))
