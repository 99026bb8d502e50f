"""Programs of the thirty-first to the thirty-eighth round: reductions, tokens beside others, what the data decides."""

from __future__ import annotations

import pytest

from oomscope.analysis.plan.growth.polynomials import Evidence, Hint
from oomscope.analysis.plan.growth.reductions import blocks_of
from oomscope.analysis.plan.growth.token_models import token_model
from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.requests.hints import hints
from tests.plan.peaks import Round, study

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("of", "program", "others", "allocated", "reserved"),
    [
        # Gradients of biases: reductions that grow until the card is full, in whole blocks.
        ("thirty_first", "deit_train", ("b96", "s288"), 0.0002, 0.01),
        ("thirty_second", "train_dit", ("b48", "s42"), 0.0001, 0.0001),
        # Experts, which may be given as many tokens in two steps by chance.
        ("thirty_third", "nanomoe", ("b12", "s1344"), 0.006, 0.001),
        # As many tokens of an image as of a text, in one sequence.
        ("thirty_eighth", "train_llava_e2e", ("b12", "s336"), 0.001, 0.005),
        # Scores that are hardly larger than queries, keys and values in one, or smaller, from the base alone.
        ("thirty_fourth", "mae_pretrain", (), 0.025, 0.045),
        ("thirty_fifth", "run_patchtst", (), 0.002, 0.035),
        # As large as hidden features, told by which weights' gradients they stand between.
        ("thirty_second", "train_dit", (), 0.005, 0.02),
        # Three tokens more than it is said, for the codebooks are shifted.
        ("thirty_fourth", "musicgen_solver", (), 0.006, 0.02),
    ],
)
def test_shapes(of: str, program: str, others: tuple[str, ...], allocated: float, reserved: float):
    Round(of).check(program, others, allocated, reserved)


def test_tokens_of_an_image_beside_a_sequence_leave_the_range_of_one_recording_wide():
    of = Round("thirty_eighth")
    for name, row in of.predicted("train_llava_e2e", ()).items():
        true = of.truth("train_llava_e2e", name)["allocated"]
        assert row.peak_allocated.low <= true <= row.peak_allocated.high, name


def test_weights_of_each_sample_may_not_grow_with_the_side():
    of = Round("thirty_sixth")
    for name, row in of.predicted("stylegan_res", ()).items():
        true = of.truth("stylegan_res", name)["allocated"]
        assert row.peak_allocated.low <= true <= row.peak_allocated.high, name


def test_an_encoder_that_sees_a_quarter_of_the_patches_has_fewer_tokens():
    recording = made_ready("base", study("mae_pretrain"), {"batch": 64, "side": 224}, StackKeys())
    told = hints(recording, ("batch", "side"))
    scores = recording.program.size == 64 * 12 * 50 * 50 * 4
    assert scores.any()
    assert (told.degree[scores][:, 1] == 4).mean() > 0.9


def test_blocks_of_a_reduction_are_whole_parts_of_what_fills_the_card():
    recording = made_ready("base", study("train_dit"), {"batch": 32, "side": 32}, StackKeys())
    block, full = blocks_of(recording)
    of_queries_keys_and_values = block == 4 * 128 * 3 * 768
    # 18 parts of 128 sums, and 2,112 blocks at once: 117⅓ of each.
    assert (full[of_queries_keys_and_values] == block[of_queries_keys_and_values] * 118).all()
    assert of_queries_keys_and_values.any()
    assert (recording.program.size[block > 0] % block[block > 0] == 0).all()
    assert (recording.program.size <= full)[block > 0].all()


def scores(beside: int, *lengths: int) -> Evidence:
    points = tuple((8.0, float(length)) for length in lengths)
    sizes = tuple(8 * 16 * (length + beside) ** 2 * 4 for length in lengths)
    return Evidence(points, sizes, Hint((1, 1), (1, 1), (1, 2)), at_once=False, of_rows=False, usual=(1, 1))


def test_scores_between_tokens_of_a_sequence_and_others():
    model = token_model(scores(256, 256, 336), (1,))
    assert model is not None
    assert model.likely.at((4.0, 640.0)) == pytest.approx(4 * 16 * 896**2 * 4)


def test_a_sum_of_two_products_is_none():
    evidence = scores(0, 256, 336)
    sizes = tuple(size + 1_000_000 for size in evidence.sizes)
    other = Evidence(evidence.points, sizes, evidence.hint, at_once=False, of_rows=False, usual=(1, 1))
    assert token_model(other, (1,)) is None


def test_an_optimizer_whose_steps_differ_by_a_few_stacks_is_one():
    # A padded batch has one kernel more or fewer in each step, which looked like two optimizers that take turns.
    assert study("rnnt_asr.b48").steps.count == 5
