"""Programs with convolutions, whose kernels choose workspaces anew at every shape: one recording against real runs.

Recordings and torch's own peaks are those of the ledger's unseen programs.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.scaling import scaled
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.reading import load

FIXTURES = Path(__file__).parents[1] / "ledger" / "fixtures"
PEAKS = json.loads((FIXTURES / "peaks.json").read_text())
RECORDED = {"convnet": {"batch": 32, "side": 160}, "diffusion": {"batch": 16, "side": 64}}
NAMES = {"b": "batch", "s": "side"}


@cache
def study(program: str) -> DeviceStudy:
    return study_device(load(FIXTURES / f"{program}.pickle.xz"), 0)


def shapes_of(program: str) -> dict[str, dict[str, int]]:
    """The shapes that were really run, such as ``b48s192``, but for the recorded one."""
    names = [name.removeprefix(f"{program}.") for name in PEAKS if name.startswith(f"{program}.")]
    return {
        name: RECORDED[program] | {NAMES[letter]: int(value) for letter, value in re.findall(r"([bs])(\d+)", name)}
        for name in names
        if re.fullmatch(r"([bs]\d+)+", name)
    }


@pytest.mark.parametrize("program", RECORDED)
def test_peaks_at_other_shapes_are_within_three_and_five_percent(program: str):
    shapes = shapes_of(program)
    assert len(shapes) >= 6
    answer = plan_of([(program, study(program))], wanted=list(shapes.values()))
    for name, row in zip(shapes, answer.predictions, strict=True):
        truth = PEAKS[f"{program}.{name}"]
        assert row.peak_allocated.bytes == pytest.approx(truth["allocated"], rel=0.03), name
        assert row.peak_reserved.bytes == pytest.approx(truth["reserved"], rel=0.05), name
        for peak, what in ((row.peak_allocated, "allocated"), (row.peak_reserved, "reserved")):
            assert peak.low <= truth[what] <= peak.high, (name, what)


def test_workspaces_grow_with_the_batch_although_it_does_not_divide_them():
    """Input or output in another layout, and a few bytes to align: 24,576,016 bytes for 32 images."""
    recording = made_ready("convnet", study("convnet"), None, StackKeys())
    model = scaled(recording, [], ("batch", "side"))
    rows = np.flatnonzero(model.workspace & (recording.program.size == 24_576_016))
    assert len(rows)
    likely, _, _ = model.sizes({"batch": 64, "side": 160})
    assert set(likely[rows].tolist()) == {2 * 24_576_016}
