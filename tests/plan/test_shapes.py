"""Shapes as people write them."""

from __future__ import annotations

import pytest

from oomscope.analysis.plan import parse_shape, parse_shapes
from oomscope.errors import RequestError


def test_a_shape_has_names_and_whole_numbers():
    assert parse_shape("batch=8, seq=1_024") == {"batch": 8, "seq": 1024}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("batch=8..64", [8, 16, 32, 64]),
        ("batch=3..7", [3, 4, 5, 6, 7]),
        ("batch=10..100", [10, 22, 34, 46, 58, 70, 82, 94, 100]),
        ("batch=5..5", [5]),
    ],
)
def test_a_range_stands_for_some_values_with_both_ends(text: str, values: list[int]):
    assert [shape["batch"] for shape in parse_shapes(text)] == values


def test_ranges_of_two_parameters_are_combined():
    assert len(parse_shapes("batch=8..64,seq=128..1024")) == 16


@pytest.mark.parametrize("text", ["batch", "batch=0", "batch=-1", "batch=x", "8", "=8", "batch=8,batch=9", "a b=3", ""])
def test_what_is_no_shape_is_refused(text: str):
    with pytest.raises(RequestError):
        parse_shape(text)


@pytest.mark.parametrize("text", ["batch=9..8", "batch=1..2..x", "a=1..9,b=1..9"])
def test_what_is_no_range_is_refused(text: str):
    with pytest.raises(RequestError):
        parse_shapes(text)
