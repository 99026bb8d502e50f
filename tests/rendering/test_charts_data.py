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


@given(st.lists(st.integers(0, 1 << 40), min_size=300, max_size=900), st.data())
def test_no_extreme_is_lost(values: list[int], data: st.DataObject):
    """In every pixel the least and the most that the curve reached there are among the instants."""
    steps = data.draw(st.lists(st.integers(0, 50), min_size=len(values), max_size=len(values)))
    curve, x = np.array(values, np.int64), np.cumsum(np.array(steps, np.float64))
    chosen = instants(curve, x, 0, len(curve) - 1, buckets=20)
    width = (x[-1] - x[0]) / 20 or 1.0
    bucket = np.minimum(((x - x[0]) / width).astype(np.int64), 19)
    for number in np.unique(bucket):
        inside = curve[bucket == number]
        seen = curve[chosen][bucket[chosen] == number]
        assert seen.max() == inside.max()
        assert seen.min() == inside.min()
    assert chosen[0] == 0
    assert chosen[-1] == len(curve) - 1
    assert len(chosen) <= 3 * 20 + 2


@given(st.lists(st.integers(0, 1 << 40), min_size=300, max_size=900), st.data())
def test_what_is_drawn_through_a_pause_is_what_was_there(values: list[int], data: st.DataObject):
    gaps = data.draw(st.lists(st.sampled_from([1, 1, 1, 900]), min_size=len(values), max_size=len(values)))
    curve, x = np.array(values, np.int64), np.cumsum(np.array(gaps, np.float64))
    chosen = instants(curve, x, 0, len(curve) - 1, buckets=20)
    width = (x[-1] - x[0]) / 20
    for entry in np.flatnonzero(np.diff(x) > 2 * width).tolist():
        drawn = chosen[chosen <= entry][-1]
        assert curve[drawn] == curve[entry]
        assert drawn == entry


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


def test_the_axis_counts_entries_and_knows_their_times():
    history = sample_findings("oom_fragmentation").devices[0].history
    steady, last = np.arange(history.entries, dtype=np.int64) * 10, history.entries - 1
    axis = time_axis(replace(history, trace=replace(history.trace, time_us=steady)), last - 2, "the OOM")
    assert axis.x.tolist() == list(range(history.entries))
    assert axis.seconds is not None
    assert axis.seconds[last - 2] == 0
    assert axis.seconds[[0, last]] == pytest.approx([-(last - 2) / 1e5, 2e-5])


@pytest.mark.parametrize("name", SAMPLES)
def test_bands_of_a_figure_sum_to_the_curve(name: str):
    """By category and by site alike, at every instant drawn."""
    findings = sample_findings(name)
    for device in findings.devices:
        history = device.history
        keys = keys_of(device)
        at = instants(
            history.curves.allocated[1:], np.arange(history.entries, dtype=np.float64), 0, history.entries - 1
        )
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
