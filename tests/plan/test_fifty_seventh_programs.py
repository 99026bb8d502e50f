"""The forty-seventh to the sixtieth round, from one recording: what stands beside an image, squares."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.plan.requests.weights import of_weights
from oomscope.analysis.plan.requests.windows import has_windows
from tests import builders
from tests.ledger.rounds import study
from tests.plan.peaks import Round


@pytest.mark.parametrize(
    ("of", "program", "allocated", "reserved"),
    [
        # A text beside the image, and windows.
        ("forty_seventh", "donut", 0.06, 0.09),
        # A text beside the image, and a moving average of all weights.
        ("forty_seventh", "albef", 0.02, 0.03),
        ("fifty_fifth", "latent_attention", 0.012, 0.05),
        # Scores behind copies of queries and keys, at a length that is a power of two.
        ("fifty_eighth", "electra_course", 0.02, 0.12),
    ],
)
def test_shapes_from_one_recording(of: str, program: str, allocated: float, reserved: float):
    Round(of).check(program, (), allocated, reserved)


def test_scores_between_one_layer_of_queries_keys_and_values_and_the_next_are_squares():
    of = Round("fifty_fifth")
    for shape, row in of.predicted("modern_bert", ()).items():
        assert row.peak_allocated.bytes == pytest.approx(of.truth("modern_bert", shape)["allocated"], rel=0.01), shape


def test_learned_tokens_beside_patches_may_stay_when_the_side_is_halved():
    half = Round("fifty_fifth").predicted("yolos", ())["s256"].peak_allocated
    truth = Round("fifty_fifth").truth("yolos", "s256")["allocated"]
    assert half.bytes < 0.9 * truth
    assert truth <= half.high


def test_windows_are_told_by_a_function():
    assert has_windows(study("donut").snapshot)
    assert not has_windows(study("albef").snapshot)


WEIGHTS = np.array([4096 * (one + 1) for one in range(12)], np.int64)


def stack(name: str, file: str) -> list[builders.Dict]:
    return [builders.frame(name, 7, file), builders.frame("main", 3, "/home/user/train.py")]


@pytest.mark.parametrize(
    ("sizes", "file", "found"),
    [
        (WEIGHTS, "/home/user/train.py", True),
        (WEIGHTS[:3].repeat(4), "/home/user/train.py", False),
        (WEIGHTS + 512, "/home/user/train.py", False),
        (WEIGHTS, "/venv/lib/python3.12/site-packages/torch/nn/functional.py", False),
        (WEIGHTS[:1], "/venv/lib/python3.12/site-packages/torch/nn/utils/parametrizations.py", True),
    ],
)
def test_a_line_that_goes_through_weights_makes_what_is_of_weights(sizes: np.ndarray, file: str, found: bool):
    trace = [builders.entry("alloc", 0x7F0000000000, 512, frames=stack("update", file))]
    stacks = builders.loaded(traces=[trace]).stacks
    number = np.full(len(sizes), len(stacks) - 1, np.int64)
    assert of_weights(stacks, sizes, number, np.ones(len(sizes), np.bool_), WEIGHTS).all() == found
