"""Blocks of a holder are found also where its name stands for several objects, and the bar shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.reading import load
from oomscope.rendering.html.live_parts import live_parts
from oomscope.units import format_bytes

PROGRAMS = Path(__file__).resolve().parents[1] / "captures" / "programs"


@pytest.mark.parametrize(
    ("name", "label"), [("fit_batch", "problems[*]"), ("folds", "unreachable cycle"), ("last_error", "job.last_error")]
)
def test_what_a_holder_keeps_is_the_number_of_the_headline(name: str, label: str):
    device = analyze(load(PROGRAMS / f"{name}.pickle.xz"), whatif=False).main
    assert device is not None
    assert device.oom is not None
    told = next(note.values for note in device.oom.verdict.headline if "holder" in note.values)
    rows = held_rows(device.study, device.at_entry, told["holder"])
    assert len(rows)
    assert device.history.lifetimes.allocated_at(device.at_entry)[rows].all()
    first = live_parts(device, str).parts[0]
    assert first.label == label
    assert format_bytes(first.bytes) == format_bytes(told["retained"])


def test_a_holder_that_no_tensor_names_keeps_nothing_that_is_known():
    device = analyze(load(PROGRAMS / "fit_batch.pickle.xz"), whatif=False).main
    assert device is not None
    assert len(held_rows(device.study, device.at_entry, "fit_batch.py: problem[*]")) == 0
