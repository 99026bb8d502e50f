"""Windows, torch's layers under autocast, a discriminator, sound, derivatives: one recording against real peaks."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.requests.hints import hints
from oomscope.analysis.plan.requests.windows import padding
from tests.plan.peaks import Round, study

ROUND = Round("sixth")


@pytest.mark.parametrize(
    ("program", "allocated", "reserved"),
    [("gpt", 0.001, 0.003), ("wavenet", 0.021, 0.07), ("pinn", 0.001, 0.001)],
)
def test_peaks_are_as_near_as_the_note_says_and_in_range(program: str, allocated: float, reserved: float):
    ROUND.check(program, (), allocated, reserved)


@pytest.mark.parametrize(("program", "allocated"), [("swin", 0.007), ("pix2pix", 0.007)])
def test_allocated_memory_of_images_from_one_shape(program: str, allocated: float):
    for name, row in ROUND.predicted(program, ()).items():
        truth = ROUND._peaks[program]["shapes"][name]["allocated"]
        assert row.peak_allocated.bytes == pytest.approx(truth, rel=allocated), name
        assert row.peak_allocated.low <= truth <= row.peak_allocated.high, name


def test_a_side_that_windows_do_not_divide_is_padded():
    tensors = study("swin").snapshot.recorded.tensors
    assert padding(tensors, [224], 320) == pytest.approx((336 / 320) ** 2 - 1), "84 of 80 places"
    assert padding(tensors, [224], 448) == 0
    assert padding(tensors, [224, 320], 448) == padding(study("pix2pix").snapshot.recorded.tensors, [256], 300) == 0


def _forward(program: str, parameters: tuple[str, ...], size: int) -> set[tuple[int, ...]]:
    recording = made_ready(program, study(program), None, StackKeys())
    degrees = hints(recording, parameters).degree[recording.program.size == size]
    return {tuple(one) for one in degrees.tolist()}


def test_casts_of_weights_do_not_grow_with_the_batch():
    assert _forward("gpt", ("batch", "seq"), 768 * 3072 * 2) == {(0, 0)}


def test_projections_of_attention_are_no_scores_whatever_divides_them():
    assert _forward("gpt", ("batch", "seq"), 8 * 512 * 3 * 768 * 2) == {(1, 1)}


def test_gradients_of_activations_may_be_as_large_as_a_weight():
    """The embedding of 2,048 places has 6 MiB, and so has what each layer makes in 16 bits of 4,096 tokens."""
    assert (1, 1) in _forward("gpt", ("batch", "seq"), 2048 * 768 * 4)


@pytest.mark.parametrize("length", [8191, 8192 + 2, 8192 + 512])
def test_what_is_padded_or_lacks_the_last_token_grows_with_the_length(length: int):
    width = 256 if length < 8192 else 128
    found = _forward("wavenet", ("batch", "length"), 4 * length * width * 4)
    assert found == {(1, 1)}


def test_hints_stay_within_their_bounds():
    recording = made_ready("wavenet", study("wavenet"), None, StackKeys())
    told = hints(recording, ("batch", "length"))
    assert np.all(told.low <= told.degree)
    assert np.all(told.degree <= told.high)
