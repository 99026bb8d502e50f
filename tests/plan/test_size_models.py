"""From sizes at a few shapes to the size at any."""

from __future__ import annotations

import pytest

from oomscope.analysis.plan.polynomials import Evidence, Hint, Point
from oomscope.analysis.plan.size_models import fit

LINEAR = Hint((1, 1), (1, 1), (1, 1))
UNSURE = Hint((1, 1), (0, 1), (1, 2))


def model_of(sizes: dict[Point, int], hint: Hint = LINEAR, *, at_once: bool = False, usual: tuple[int, ...] = (1, 1)):
    return fit(Evidence(tuple(sizes), tuple(sizes.values()), hint, at_once, usual))


@pytest.mark.parametrize(
    "size",
    [
        lambda batch, seq: 4096,
        lambda batch, seq: 128 * batch,
        lambda batch, seq: 64 * batch * seq,
        lambda batch, seq: 8 * batch * seq**2,
        lambda batch, seq: 2 * seq**2,
        lambda batch, seq: 4 * batch**2,
        lambda batch, seq: 32 * batch * (seq - 1),
        lambda batch, seq: 4096 * (batch + 1),
    ],
)  # fmt: skip
def test_three_recordings_bear_out_products_and_those_with_a_shift(size):
    points = [(4.0, 128.0), (6.0, 128.0), (4.0, 192.0)]
    found = model_of({point: int(size(*point)) for point in points})
    assert found.is_borne_out
    assert found.span((16.0, 1000.0)) == (int(size(16, 1000)),) * 3


def test_what_is_not_varied_follows_what_the_request_is_with_a_range():
    found = model_of({(4.0, 128.0): 4 * 128, (6.0, 128.0): 6 * 128}, UNSURE)
    assert not found.is_borne_out
    assert found.span((8.0, 256.0)) == (8 * 256, 8 * 256, 8 * 512)


def test_a_workspace_that_fits_nothing_may_be_as_large_as_any_that_was_seen():
    found = model_of({(4.0, 1.0): 1000, (6.0, 1.0): 9000}, at_once=True)
    assert not found.is_borne_out
    assert found.span((12.0, 1.0)) == (3000, 3000, 18000)


def test_a_convolution_that_rounds_its_side_down_is_the_square_of_a_shifted_side():
    def size(side: int) -> int:
        return 64 * ((side + 5) // 2) ** 2 * 4

    points = {(4.0, float(side)): size(side) for side in (64, 96, 160)}
    found = model_of(points, Hint((1, 2), (1, 2), (1, 2)), usual=(1, 2))
    assert found.span((4.0, 224.0))[0] == pytest.approx(size(224), rel=0.01)


def test_sizes_never_fall_below_a_byte():
    found = model_of({(4.0, 128.0): 4 * 127, (4.0, 192.0): 4 * 191})
    assert min(found.span((4.0, 1.0))) >= 1


def test_scores_between_patches_grow_with_the_fourth_power_of_the_side():
    def size(side: int) -> int:
        return 12 * ((side // 16) ** 2 + 1) ** 2 * 4

    points = {(4.0, float(side)): size(side) for side in (224, 288)}
    found = model_of(points, Hint((1, 2), (1, 2), (1, 2)), usual=(1, 2))
    assert found.span((4.0, 448.0))[0] == pytest.approx(size(448), rel=0.001)


def test_tokens_of_an_image_are_its_square_and_one():
    def size(side: int) -> int:
        return 768 * ((side // 16) ** 2 + 1) * 4

    points = {(4.0, float(side)): size(side) for side in (224, 288)}
    found = model_of(points, Hint((1, 2), (1, 2), (1, 2)), usual=(1, 2))
    assert found.span((4.0, 448.0))[0] == pytest.approx(size(448), rel=0.001)
