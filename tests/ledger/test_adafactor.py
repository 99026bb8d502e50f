"""Of which weights Adafactor keeps a row and a column, where the recording knows their shapes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.ledger.edits import adafactor


def run_with(shapes: list[tuple[int, ...]], trained: list[int] | None = None) -> Any:
    tensors = [SimpleNamespace(category="parameter", shape=shape) for shape in shapes]
    sizes = [4 * int(np.prod(shape)) for shape in shapes] if trained is None else trained
    recorded = SimpleNamespace(tensors=tensors)
    return SimpleNamespace(
        study=SimpleNamespace(snapshot=SimpleNamespace(recorded=recorded)), trained=np.array(sizes, np.int64)
    )


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
    factors = adafactor._factors(run_with([shape]))
    elements = int(np.prod(shape))
    assert factors == {4 * elements: pytest.approx(kept / elements)}


def test_weights_of_one_size_share_the_mean():
    factors = adafactor._factors(run_with([(4, 4), (16,)]))
    assert factors == {64: pytest.approx((8 / 16 + 1) / 2)}


def test_where_most_shapes_are_unknown_nothing_is_told():
    assert adafactor._factors(run_with([(4, 4)], trained=[64, 1 << 20])) == {}
    assert adafactor._factors(run_with([], trained=[64])) == {}
