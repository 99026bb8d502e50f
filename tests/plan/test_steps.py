"""Sizes that grow in steps: what is padded up to windows, patches or multiples of a length."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.growth.polynomials import Evidence, Hint, Model
from oomscope.analysis.plan.growth.size_models import fit
from oomscope.analysis.plan.growth.steps import Stepped, filled, in_steps

SHAPES = ((64.0, 224.0), (96.0, 224.0), (64.0, 288.0))
NAMES = ("batch", "side")
ASKED = ((64.0, 160.0), (32.0, 384.0), (64.0, 448.0))


def made(width: int, channels: int, shapes: tuple[tuple[float, ...], ...] = SHAPES, degree: int = 2) -> Evidence:
    """What windows of 7 × 7 hold at a stage where one is so wide."""
    sizes = tuple(int(4 * 49 * channels * batch * (-(-side // width)) ** degree) for batch, side in shapes)
    hint = Hint((1, degree), (1, degree), (1, degree))
    return Evidence(shapes, sizes, hint, at_once=False, of_rows=False, usual=(1, degree))


def models(*evidence: Evidence, names: tuple[str, ...] = NAMES) -> list[Model]:
    """Of requests that one line made."""
    return in_steps([fit(one) for one in evidence], evidence, [np.array([0])] * len(evidence), names)


def stages() -> list[Evidence]:
    """Of a transformer that halves its sides three times and doubles its channels."""
    return [made(28 << stage, 96 << stage) for stage in range(4)]


def test_stages_with_windows_are_exact_at_sides_that_no_window_divides():
    found = models(*stages())
    assert [one.likely.width for one in found if isinstance(one.likely, Stepped)] == [28, 56, 112, 224]
    for shape in ASKED:
        for model, truth in zip(found, (made(28 << stage, 96 << stage, (shape,)) for stage in range(4)), strict=True):
            assert model.span(shape) == (truth.sizes[0],) * 3
    assert all(one.is_borne_out for one in found)


def test_the_same_from_the_padded_recording():
    turned = tuple(SHAPES[row] for row in (2, 0, 1))
    found = models(*(made(28 << stage, 96 << stage, turned) for stage in range(4)))
    assert [one.likely.width for one in found if isinstance(one.likely, Stepped)] == [28, 56, 112, 224]


def test_where_the_width_is_not_known_the_range_has_all_of_them():
    found = models(made(56, 192))[0]
    assert not found.is_borne_out
    for shape in ASKED[:2]:
        _, least, most = found.span(shape)
        for width in (56, 112):
            assert least <= 4 * 49 * 192 * shape[0] * (-(-shape[1] // width) * width / 56) ** 2 <= most
        assert least <= fit(made(56, 192)).span(shape)[0] <= most, "nor is it known that it grows in steps"


def test_lengths_padded_to_multiples():
    shapes = ((8.0, 512.0), (12.0, 512.0), (8.0, 600.0))
    found = models(made(64, 96, shapes, 1), made(128, 96, shapes, 1), names=("batch", "seq"))[0]
    assert {one.width for one in (found.likely, *found.others) if isinstance(one, Stepped)} >= {64}


def test_a_batch_is_not_padded_and_what_fits_a_product_is_one():
    linear = Evidence(SHAPES, (6400, 9600, 6400), Hint((1, 0), (1, 0), (1, 0)), at_once=False, of_rows=False,
                      usual=(1, 2))  # fmt: skip
    assert models(linear)[0] == fit(linear)
    square = made(1, 96)
    assert models(square)[0] == fit(square)


def test_what_only_one_recording_has_grows_as_what_is_as_large():
    base = stages()[0]
    alone = Evidence(base.points[:1], base.sizes[:1], base.hint, at_once=False, of_rows=False, usual=base.usual)
    assert models(*stages(), alone)[-1].span(ASKED[0])[0] == made(28, 96, ASKED[:1]).sizes[0]


def test_recordings_that_pad_are_told_from_those_that_do_not():
    found = models(*stages())
    assert filled(found, SHAPES[0]) == filled(found, ASKED[2])
    assert filled(found, SHAPES[2]) == filled(found, ASKED[0]) != filled(found, SHAPES[0])


def test_what_pads_only_the_smaller_side_may_be_padded_or_have_something_beside_it():
    shapes = ((8.0, 256.0), (8.0, 336.0))
    one = models(made(28, 96, shapes))[0]
    assert one.likely == fit(made(28, 96, shapes)).likely, "tokens beside those of an image explain it as well"
    several = models(made(28, 96, shapes), made(112, 384, shapes), made(56, 192, shapes))
    for model, width in ((one, 28), (several[0], 28)):
        _, least, most = model.span((8.0, 392.0))
        assert least <= made(width, 96, ((8.0, 392.0),)).sizes[0] <= most
