"""What figures are reduced to keeps every extreme and every byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.analysis.records import CATEGORIES
from oomscope.rendering.html.chart_data import bytes_by_key, instants, last_stretch, staircase, time_axis
from oomscope.rendering.html.lifetime_keys import keys_of
from tests.samples import SAMPLES, sample_findings


@given(st.lists(st.integers(0, 1 << 40), min_size=300, max_size=900), st.integers(1, 40))
def test_no_extreme_is_lost(values: list[int], buckets: int):
    """In every pixel the least and the most that the curve reached there are among the instants."""
    curve = np.array(values, np.int64)
    chosen = instants(curve, 0, len(curve) - 1, buckets)
    pixel = np.minimum(np.arange(len(curve)) * buckets // (len(curve) - 1), buckets - 1)
    for number in np.unique(pixel):
        inside = curve[pixel == number]
        seen = curve[chosen][pixel[chosen] == number]
        assert seen.max() == inside.max()
        assert seen.min() == inside.min()
    assert chosen[0] == 0
    assert chosen[-1] == len(curve) - 1
    assert len(chosen) <= 2 * buckets + 2


@given(
    st.lists(
        st.tuples(st.integers(-1, 30), st.integers(0, 31), st.integers(1, 1 << 45), st.integers(0, 3)), max_size=40
    ),
    st.sets(st.integers(0, 30), min_size=1),
)
def test_bytes_by_key_counts_what_is_live(rows: list[tuple[int, int, int, int]], at: set[int]):
    rows = [(born, max(born, ended), size, key) for born, ended, size, key in rows]
    born, ended, size, key = (np.array([row[column] for row in rows], np.int64) for column in range(4))
    entries = np.array(sorted(at), np.int64)
    found = bytes_by_key(born, ended, size, key, 4, entries)
    for column, entry in enumerate(entries.tolist()):
        for one in range(4):
            assert found[one, column] == sum(s for b, e, s, k in rows if k == one and b <= entry < e)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_a_staircase_passes_through_every_instant(values: list[int]):
    x, curve = np.arange(len(values), dtype=np.float64), np.array(values, np.int64)
    xs, ys = staircase(x, curve)
    assert np.all(np.diff(xs) >= 0)
    assert (xs[0], ys[0], xs[-1], ys[-1]) == (x[0], values[0], x[-1], values[-1])
    for at, value in zip(x, curve, strict=True):
        assert ys[np.searchsorted(xs, at, side="right") - 1] == value


def test_the_axis_knows_the_times_of_entries():
    history = sample_findings("oom_fragmentation").devices[0].history
    steady, last = np.arange(history.entries, dtype=np.int64) * 10, history.entries - 1
    axis = time_axis(replace(history, trace=replace(history.trace, time_us=steady)), last - 2, "the OOM")
    assert [axis.after_zero(entry) for entry in (0, last - 2, last)] == [-(last - 2) * 10, 0, 20]
    assert [axis.after_zero(entry) for entry in (-1, last + 1)] == [None, None]
    assert (
        time_axis(replace(history, trace=replace(history.trace, time_us=steady[::-1])), 5, "the OOM").after_zero(9) == 0
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_bands_of_a_figure_sum_to_the_curve(name: str):
    """By category and by site alike, at every instant drawn."""
    findings = sample_findings(name)
    for device in findings.devices:
        history = device.history
        keys = keys_of(device)
        at = instants(history.curves.allocated[1:], 0, history.entries - 1)
        lifetimes = history.lifetimes
        for key, count in ((keys.category, len(CATEGORIES)), (keys.row, keys.rows), (keys.coloured(), keys.top + 1)):
            bands = bytes_by_key(lifetimes.born, lifetimes.freed, history.size, key, count, at)
            assert np.array_equal(bands.sum(axis=0), history.curves.allocated[at + 1])


@pytest.mark.parametrize("name", SAMPLES)
def test_rows_at_the_instant_are_those_of_the_sites_table(name: str):
    findings = sample_findings(name)
    for device in findings.devices:
        keys = keys_of(device)
        live = device.history.lifetimes.allocated_at(device.at_entry)
        found = np.bincount(keys.row[live], weights=device.history.size[live], minlength=keys.rows)
        assert found[:-1].astype(np.int64).tolist() == [use.bytes for use in device.sites if use.label != "all others"]


def test_the_closer_look_is_three_steps_and_never_most_of_the_picture():
    assert last_stretch(1000, 990, tuple(range(0, 1000, 100))) == (700, 999)
    assert last_stretch(300, 299, ()) is None
    assert last_stretch(12_000, 11_999, ()) == (10_999, 11_999)
