"""Masked words, letters of speech, graphs, a diffusion U-Net: one recording against real peaks."""

from __future__ import annotations

import pytest

from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.requests.hints import hints
from tests.plan.peaks import Round, study

ROUND = Round("eighth")


@pytest.mark.parametrize(
    ("program", "allocated", "reserved"),
    [("masked", 0.002, 0.001), ("letters", 0.006, 0.035), ("mesh", 0.001, 0.015), ("ddpm", 0.002, 0.08)],
)
def test_peaks_are_as_near_as_the_note_says_and_in_range(program: str, allocated: float, reserved: float):
    ROUND.check(program, (), allocated, reserved)


def test_scores_of_pixels_grow_with_the_fourth_power_of_the_side():
    recording = made_ready("ddpm", study("ddpm"), None, StackKeys())
    scores = recording.program.size == 24 * 4 * 256 * 256 * 4
    degrees = hints(recording, ("batch", "side")).degree[scores]
    assert {tuple(one) for one in degrees.tolist()} == {(1, 4)}
