"""Of which weights Adafactor keeps a row and a column, where the recording knows their shapes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.ledger.edits import adafactor


def factors_of(
    shapes: list[tuple[int, ...]], states: list[int] | None = None, category: str = "parameter"
) -> dict[int, float]:
    tensors = [SimpleNamespace(category=category, shape=shape) for shape in shapes]
    run: Any = SimpleNamespace(
        study=SimpleNamespace(snapshot=SimpleNamespace(recorded=SimpleNamespace(tensors=tensors)))
    )
    sizes = [4 * int(np.prod(shape)) for shape in shapes] if states is None else states
    return adafactor._factors(run, np.array(sizes, np.int64))


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ((512, 2048), 512 + 2048),
        ((64, 32, 3, 3), 64 * 32 * 3 + 64 * 32 * 3),
        ((64, 32, 1, 1), 2 * 64 * 32),
        ((64, 32, 1, 5), 64 * 32 + 64 * 32 * 5),
        ((2048,), 2048),
    ],
)
def test_torch_factors_the_last_two_sides(shape: tuple[int, ...], kept: int):
    factors = factors_of([shape])
    elements = int(np.prod(shape))
    assert factors == {4 * elements: pytest.approx(kept / elements)}


def test_weights_of_one_size_share_the_mean():
    factors = factors_of([(4, 4), (16,)])
    assert factors == {64: pytest.approx((8 / 16 + 1) / 2)}


def test_where_most_shapes_are_unknown_nothing_is_told():
    assert factors_of([(4, 4)], [64, 1 << 20]) == {}
    assert factors_of([], [64]) == {}


def test_a_state_has_the_shape_of_its_parameter_which_may_be_a_part_of_a_larger_piece():
    assert factors_of([(2560, 640)], category="optimizer_state") == {4 * 2560 * 640: pytest.approx(3200 / 2560 / 640)}
