"""A masked autoencoder, whose encoder attends between a fourth of the patches, and its decoder between all of them."""

from __future__ import annotations

import pytest

from oomscope.analysis.plan.growth.polynomials import Evidence, Hint
from oomscope.analysis.plan.growth.token_models import token_model
from tests.plan.peaks import Round

ROUND = Round("sixteenth")
HEADS = 12 * 4


def test_scores_of_patches_and_a_token_are_squares_at_every_side():
    ROUND.check("masked_patches", ("b96", "i288"), 0.001, 0.005)


def scores(batch: int, side: int, width: int, beside: int) -> int:
    return batch * HEADS * ((side // width) ** 2 + beside) ** 2


def evidence(*seen: tuple[int, int, int], usual: int = 2) -> Evidence:
    points = tuple((float(batch), float(side)) for batch, side, _ in seen)
    hint = Hint((1, 2), (1, 2), (1, 4))
    return Evidence(points, tuple(size for *_, size in seen), hint, at_once=False, of_rows=False, usual=(1, usual))


@pytest.mark.parametrize(("width", "beside"), [(16, 1), (32, 1), (16, 5), (14, 2), (16, 77), (8, 512)])
def test_two_sides_tell_the_patches_and_what_stands_beside_them(width: int, beside: int):
    shapes = [(64, 16 * width), (96, 16 * width), (64, 20 * width)]
    found = token_model(
        evidence(*((batch, side, scores(batch, side, width, beside)) for batch, side in shapes)), (0, 1)
    )
    assert found is not None
    assert found.is_borne_out
    for batch, side in ((32, 8 * width), (8, 40 * width)):
        assert found.likely.at((float(batch), float(side))) == pytest.approx(scores(batch, side, width, beside), abs=1)


@pytest.mark.parametrize(
    "seen",
    [
        [(64, 224, 1000), (96, 224, 1500), (64, 288, 1653)],  # linear in the number of pixels
        [(64, 224, 64 * 222**2), (96, 224, 96 * 222**2), (64, 288, 64 * 286**2)],  # what convolutions leave of a side
        [(64, 224, scores(64, 224, 16, 1)), (96, 224, scores(96, 224, 16, 1))],  # one side
        [(64, 224, scores(64, 224, 16, 1)), (96, 224, scores(96, 224, 16, 2)), (64, 288, scores(64, 288, 16, 1))],
        [(64, 224, scores(64, 224, 16, 1)), (96, 224, scores(96, 224, 16, 1)), (64, 290, scores(64, 288, 16, 1))],
    ],
)
def test_nothing_else_is_taken_for_them(seen: list[tuple[int, int, int]]):
    assert token_model(evidence(*seen), (0, 1)) is None


def test_a_length_has_no_patches():
    shapes = [(64, 256), (96, 256), (64, 320)]
    seen = [(batch, side, scores(batch, side, 16, 1)) for batch, side in shapes]
    assert token_model(evidence(*seen, usual=1), (0, 1)) is None
