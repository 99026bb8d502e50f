"""From sizes at a few shapes to the size at any."""

from __future__ import annotations

from math import expm1

import pytest

from oomscope.analysis.plan.growth.polynomials import Evidence, Hint, Point
from oomscope.analysis.plan.growth.size_models import fit

IMAGE = Hint((1, 2), (1, 2), (1, 2))
LINEAR = Hint((1, 1), (1, 1), (1, 1))
UNSURE = Hint((1, 1), (0, 1), (1, 2))


def model_of(
    sizes: dict[Point, int],
    hint: Hint = LINEAR,
    *,
    at_once: bool = False,
    of_rows: bool = False,
    usual: tuple[int, ...] = (1, 1),
    by_data: bool = False,
):
    return fit(Evidence(tuple(sizes), tuple(sizes.values()), hint, at_once, of_rows, usual, by_data=by_data))


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


def kernel(constant: int, batch: float, side: float) -> int:
    """Copies of weights, and of what goes in and out."""
    return constant + round(20 * batch * side**2)


SHAPES = ((8.0, 320.0), (12.0, 320.0), (8.0, 384.0))


@pytest.mark.parametrize("constant", [0, 400_000, 9 << 20])
def test_a_workspace_is_copies_that_grow_and_weights_that_do_not(constant: int):
    found = model_of({shape: kernel(constant, *shape) for shape in SHAPES}, IMAGE, at_once=True)
    assert found.span((2.0, 320.0))[0] == pytest.approx(kernel(constant, 2, 320), abs=8)
    assert found.is_borne_out == (constant < 1 << 20), "a large constant is of the kernel, and may go with it"


def test_of_three_workspaces_two_may_be_of_one_kernel_and_the_third_of_another():
    """Both copy as much; one has 15 MiB more beside that. No other two lie on a line that can be."""
    size = {(12.0, 128.0): 72, (8.0, 128.0): 41, (8.0, 192.0): 96}
    found = model_of({point: mib << 20 for point, mib in size.items()}, IMAGE, at_once=True)
    assert found.span((24.0, 128.0)) == (120 << 20, 105 << 20, 120 << 20)


def test_where_several_pairs_may_be_of_one_kernel_the_own_size_counts():
    size = {(12.0, 128.0): 64, (8.0, 128.0): 51, (8.0, 192.0): 100}
    found = model_of({point: mib << 20 for point, mib in size.items()}, IMAGE, at_once=True)
    assert not found.is_borne_out
    assert found.span((24.0, 128.0))[0] == 128 << 20


def test_a_workspace_that_splits_its_work_otherwise_at_each_shape_lies_beside_such_a_line():
    sizes = {shape: round(kernel(4 << 20, *shape) * part) for shape, part in zip(SHAPES, (1, 1.01, 0.985), strict=True)}
    found = model_of(sizes, IMAGE, at_once=True)
    assert found.span((8.0, 512.0))[0] == pytest.approx(kernel(4 << 20, 8, 512), rel=0.1)


def test_rows_that_are_drawn_alike_near_those_of_their_table():
    def distinct(batch: float, history: float) -> int:
        return round(100_000_000 * -expm1(-250 * batch * history / 100_000_000))

    shapes = ((16384.0, 20.0), (24576.0, 20.0), (16384.0, 30.0))
    found = model_of({shape: distinct(*shape) for shape in shapes}, of_rows=True)
    for shape in ((4096.0, 20.0), (65536.0, 20.0), (16384.0, 60.0)):
        likely, low, high = found.span(shape)
        assert likely == pytest.approx(distinct(*shape), rel=0.001)
        assert low <= likely <= high
    once = model_of({shape: distinct(*shape) for shape in shapes[::2]}, of_rows=True)
    assert once.span((65536.0, 20.0))[0] == pytest.approx(distinct(65536, 20), rel=0.001), "a batch draws, too"


def test_rows_of_a_table_that_is_never_used_up_grow_with_what_is_drawn():
    found = model_of({(4.0, 10.0): 40_000, (6.0, 10.0): 60_010}, of_rows=True)
    assert found.span((8.0, 20.0))[0] == pytest.approx(160_000, rel=0.01)


def test_what_is_a_square_in_the_side_is_linear_in_a_batch_that_no_recording_varies():
    sizes = {(4.0, float(side)): round(4 * (100 + 3 * side) ** 2) for side in (32, 48)}
    found = model_of(sizes, IMAGE, usual=(1, 2))
    assert found.span((8.0, 32.0))[0] == pytest.approx(2 * sizes[4.0, 32.0], rel=0.001)


def test_text_beside_an_image_is_a_part_that_does_not_grow_with_its_side():
    sizes = {(16.0, float(side)): 16 * 2560 * (77 + side**2 // 4) for side in (32, 48)}
    likely, low, high = model_of(sizes, IMAGE, usual=(1, 2)).span((16.0, 64.0))
    assert low <= 16 * 2560 * (77 + 64**2 // 4) <= high
    assert likely == pytest.approx(16 * 2560 * (77 + 64**2 // 4), rel=0.08)


def test_what_data_decides_grows_in_proportion_whatever_chance_made_of_it_elsewhere():
    sizes = {(4.0, 128.0): 1000, (6.0, 128.0): 900, (4.0, 192.0): 2200}
    found = model_of(sizes, Hint((0, 1), (0, 1), (1, 1)), by_data=True)
    assert not found.is_borne_out
    assert found.span((8.0, 256.0))[0] == 4000


def test_a_size_at_a_shape_that_changes_two_parameters_at_once_bears_out_no_power_far_above_what_the_request_is():
    """At half the batch and 2.25 times the side another kernel made a quarter: batch cubed fits by chance."""
    sizes = {(16.0, 256.0): 1 << 28, (16.0, 352.0): 507_510_784, (8.0, 576.0): 169_869_312}
    found = model_of(sizes, IMAGE)
    assert not found.is_borne_out
    assert found.span((56.0, 256.0))[0] == 56 << 24
    alone = {(16.0, 256.0): 1 << 20, (16.0, 512.0): 4 << 20, (8.0, 256.0): 1 << 17}
    assert model_of(alone, IMAGE).span((32.0, 256.0)) == (8 << 20,) * 3, "where one alone changes, it tells"


def test_nor_that_most_of_it_stays():
    sizes = {(16.0, 256.0): 1 << 28, (24.0, 256.0): 24 << 24, (8.0, 576.0): 169_869_312}
    found = model_of(sizes, IMAGE)
    assert not found.is_borne_out
    assert found.span((16.0, 128.0))[1] == 1 << 26
