"""Programs of the thirty-ninth to the forty-sixth round: crops, masks at random, tokens beside others, windows."""

from __future__ import annotations

import pytest

from oomscope.analysis.plan.growth.crop_models import crop_model
from oomscope.analysis.plan.growth.polynomials import Evidence, Hint
from oomscope.analysis.plan.growth.size_models import fit
from tests.plan.peaks import Round

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("of", "program", "others", "allocated", "reserved"),
    [
        # Crops of three sevenths of a side, in whole patches, with registers beside them.
        ("forty_third", "dino_vit_registers", ("b48", "s288"), 0.004, 0.03),
        # Scores of patches and one token, of which one shape tells how they grow with the side alone.
        ("forty_first", "dpt_vit", ("b12", "s512"), 0.002, 0.002),
        # A decoder's steps behind those of the encoder.
        ("forty_first", "tft_forecast", ("b768", "s216"), 0.001, 0.001),
        # Windows that pad at every recorded side.
        ("forty_fifth", "medsam_finetune", ("b12", "s512"), 0.03, 0.04),
        # A batch is padded to its own longest document, which the data decides.
        ("forty_sixth", "electra_pretrain", ("b36", "s336"), 0.01, 0.1),
        ("forty_sixth", "electra_pretrain", (), 0.02, 0.17),
        # Patches are masked at random.
        ("fortieth", "ijepa_vit", ("b36", "s288"), 0.06, 0.06),
    ],
)
def test_shapes(of: str, program: str, others: tuple[str, ...], allocated: float, reserved: float):
    Round(of).check(program, others, allocated, reserved)


SIDES, TOKENS = (224, 288), (6 * 6 + 5, 8 * 8 + 5)
EACH = 8 * 384 * 4
"""Bytes of a token of eight crops."""


def crops(*sizes: int, sides: tuple[int, ...] = SIDES, degree: int = 2) -> Evidence:
    points = tuple((32.0, float(side)) for side in sides)
    hint = Hint((1, degree), (1, 0), (1, 4))
    return Evidence(points, sizes, hint, at_once=False, of_rows=False, usual=(1, 2))


def test_crops_have_whole_patches_and_tokens_beside_them():
    model = crop_model(crops(*(32 * EACH * tokens for tokens in TOKENS)), (1,))
    assert model is not None
    assert model.likely.at((32.0, 112.0)) == pytest.approx(32 * EACH * (3 * 3 + 5))
    assert model.likely.at((16.0, 112.0)) == pytest.approx(16 * EACH * (3 * 3 + 5))
    likely, least, most = model.span((16.0, 560.0))
    # Three sevenths of 35 patches are 15; two sides allow a few numbers beside that.
    assert likely == 16 * EACH * (15 * 15 + 5)
    assert least <= likely < most < 1.5 * likely


def test_scores_of_crops_are_squares():
    model = crop_model(crops(*(32 * 6 * tokens**2 * 4 for tokens in TOKENS), degree=4), (1,))
    assert model is not None
    assert model.likely.at((32.0, 112.0)) == pytest.approx(32 * 6 * 14**2 * 4)


def test_patches_in_proportion_to_the_side_are_no_crops():
    tokens = (14 * 14 + 1, 18 * 18 + 1)
    assert crop_model(crops(*(32 * EACH * one for one in tokens)), (1,)) is None


def test_a_sum_that_begins_below_0_is_no_law_that_two_sides_bear_out():
    points = ((32.0, 224.0), (32.0, 288.0), (48.0, 224.0))
    hint = Hint((1, 2), (1, 0), (1, 4))
    sizes = tuple(round(batch * 1000 * (side**2 - 10_007)) for batch, side in points)
    model = fit(Evidence(points, sizes, hint, at_once=False, of_rows=False, usual=(1, 2)))
    likely, least, most = model.span((32.0, 112.0))
    assert not model.is_borne_out
    assert least <= likely < 0.25 * sizes[0] <= most
