"""Tables answer as numpy's sorting does, whatever the values."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.model.ordering import among, ascending, is_any, numbered, places, stable_order, summed

LEAST, MOST = -(1 << 63), (1 << 63) - 1
near = st.integers(-3, 40)
far = st.integers(LEAST, MOST) | st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST])
aligned = st.integers(0, 1 << 20).map(lambda number: (1 << 46) + 512 * number)
columns = (
    st.lists(near, max_size=60) | st.lists(far, max_size=12) | st.lists(near | far, max_size=30)
    | st.lists(aligned, max_size=30)
).map(lambda values: np.array(values, np.int64))  # fmt: skip


@given(columns)
def test_the_distinct_values_ascend(values: np.ndarray):
    assert np.array_equal(ascending(values), np.unique(values))


@given(columns)
def test_each_value_has_the_number_that_unique_gives(values: np.ndarray):
    distinct, number = numbered(values)
    wanted, inverse = np.unique(values, return_inverse=True)
    assert np.array_equal(distinct, wanted)
    assert np.array_equal(number, inverse)


@pytest.mark.parametrize("bits", [40, 52, 57])
@given(keys=columns, random=st.randoms(use_true_random=False))
def test_sums_are_those_of_a_dictionary(bits: int, keys: np.ndarray, random: Random):
    values = np.array([random.randrange(-(1 << bits), 1 << bits) for _ in keys], np.int64)
    wanted: dict[int, int] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        wanted[key] = wanted.get(key, 0) + value
    distinct, sums = summed(keys, values)
    assert dict(zip(distinct.tolist(), sums.tolist(), strict=True)) == wanted
    assert distinct.tolist() == sorted(wanted)


@pytest.mark.parametrize("side", ["left", "right"])
@given(ordered=columns, values=columns)
def test_places_are_those_of_searchsorted(side: str, ordered: np.ndarray, values: np.ndarray):
    ordered = np.sort(ordered)
    assert np.array_equal(places(ordered, values, side), np.searchsorted(ordered, values, side))


@given(columns, columns)
def test_among_is_isin(values: np.ndarray, few: np.ndarray):
    assert np.array_equal(among(values, few), np.isin(values, few))


@given(st.lists(st.integers(0, 255), max_size=30), st.sets(st.integers(0, 255), max_size=5))
def test_kinds_are_looked_up(kinds: list[int], wanted: set[int]):
    assert is_any(np.array(kinds, np.uint8), wanted).tolist() == [kind in wanted for kind in kinds]


@given(columns)
def test_the_order_is_stable(values: np.ndarray):
    assert np.array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint8])
def test_narrow_columns_do_not_overflow(kind: type):
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    values = np.array([most, least, 0, most, 1] * 300, kind)
    assert np.array_equal(stable_order(values), np.argsort(values, kind="stable"))
    assert np.array_equal(places(np.sort(values), values), np.searchsorted(np.sort(values), values))
    assert np.array_equal(numbered(values)[1], np.unique(values, return_inverse=True)[1])


@pytest.mark.parametrize("shift", [0, 3, 9])
@pytest.mark.parametrize("bits", [1, 16, 17, 32, 33, 42, 53, 54])
def test_sorting_by_address_keeps_the_order_of_equal_ones(shift: int, bits: int):
    random = np.random.default_rng(3)
    few = random.integers(0, 1 << bits, 50)
    address = (1 << 46) - 512 + (few[random.integers(0, len(few), 1000)] << shift)
    np.testing.assert_array_equal(stable_order(address), np.argsort(address, kind="stable"))


def test_sorting_the_extremes_does_not_overflow():
    extreme = np.array([5, -(1 << 63), (1 << 63) - 1, 5, -(1 << 63)])
    np.testing.assert_array_equal(stable_order(extreme), np.argsort(extreme, kind="stable"))
    assert len(stable_order(np.zeros(0, np.int64))) == 0
