"""A plain transformer with a pyramid, T5, volumes, pairs of residues, crops: one recording against real peaks."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.requests.hints import hints
from tests.plan.peaks import Round, study

pytestmark = pytest.mark.thorough

ROUND = Round("seventh")
FIXED_CROPS = 16 * 6 * 37 * 384 * 4
"""Bytes of 6 crops of 96 × 96 for each of 16 images: 36 patches and one token more."""


@pytest.mark.parametrize(
    ("program", "allocated", "reserved"),
    [("vitdet", 0.006, 0.06), ("t5", 0.002, 0.002), ("unet3d", 0.008, 0.13), ("dino", 0.0015, 0.027)],
)
def test_peaks_are_as_near_as_the_note_says_and_in_range(program: str, allocated: float, reserved: float):
    ROUND.check(program, (), allocated, reserved)


def test_pairs_grow_with_the_square_of_the_length_and_their_scores_with_the_cube():
    for name, row in ROUND.predicted("folding", ()).items():
        truth = ROUND._peaks["folding"]["shapes"][name]["allocated"]
        assert row.peak_allocated.bytes == pytest.approx(truth, rel=0.002), name
        assert row.peak_allocated.low <= truth <= row.peak_allocated.high, name


def _degrees(program: str, parameters: tuple[str, ...], size: int) -> set[tuple[int, ...]]:
    recording = made_ready(program, study(program), None, StackKeys())
    degrees = hints(recording, parameters).degree[recording.program.size == size]
    return {tuple(one) for one in degrees.tolist()}


@pytest.mark.parametrize(
    ("size", "degree"), [(2 * 128**2 * 64 * 4, 2), (2 * 128**3 * 4 * 4, 3), (2 * 128 * 256 * 4, 1)]
)
def test_the_sides_of_weights_tell_pairs(size: int, degree: int):
    assert (1, degree) in _degrees("folding", ("batch", "length"), size)


def test_a_model_of_tokens_has_no_pairs():
    recording = made_ready("t5", study("t5"), None, StackKeys())
    assert int(hints(recording, ("batch", "seq")).degree[:, 1].max()) == 2, "scores"


def test_crops_do_not_grow_with_the_side_of_the_images():
    assert _degrees("dino", ("batch", "side"), FIXED_CROPS) == {(1, 0)}
    assert _degrees("dino", ("batch", "side"), 16 * 2 * 197 * 384 * 4) == {(1, 2)}


def test_a_target_for_each_place_of_a_pyramid_is_of_the_image():
    places = 128**2 + 64**2 + 32**2 + 16**2
    assert _degrees("vitdet", ("batch", "side"), 4 * places * 80 * 4) == {(1, 2)}


def test_reserved_memory_may_have_one_hole_more_for_the_largest_workspace():
    row = ROUND.predicted("unet3d", ())["b3x128"].peak_reserved
    recording = made_ready("unet3d", study("unet3d"), None, StackKeys())
    largest = int(recording.program.size[recording.at_once].max())
    assert row.high - row.bytes > largest
    assert np.isclose(row.high - row.bytes, row.bytes - row.low, rtol=0.01)
