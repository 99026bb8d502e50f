"""What the page embeds of a timeline is exact: at every instant it names, each band and each curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oomscope.analysis.records import CATEGORIES
from oomscope.rendering.html import timeline_data
from oomscope.rendering.html.chart_data import bytes_by_key, last_stretch, time_axis
from oomscope.rendering.html.lifetime_keys import (
    EARLIER_SHARE,
    EARLIER_SITES,
    TOLD_SITES,
    keys_of,
    told_rows,
)
from oomscope.rendering.html.timeline_data import MOST_BYTES, MOST_CHOSEN, MOST_INSTANTS, bands_of, packed
from oomscope.rendering.html.timelines import told_of
from tests.rendering.packed import Row, unpacked
from tests.samples import SAMPLES, sample_findings


def rows_of(name: str, most_bytes: int = MOST_BYTES) -> tuple[dict, list[Row]]:
    device = sample_findings(name).devices[0]
    told = told_of(device, str)
    axis = time_axis(device.history, device.at_entry, "the OOM")
    stretch = last_stretch(device.history.entries, device.at_entry, device.steps.boundaries)
    spec = packed(device, bands_of(device, told.keys, told.live.key, told.rows), axis, stretch, [], most_bytes)
    return spec, unpacked(spec)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_instant_has_the_values_of_the_curves(name: str):
    device = sample_findings(name).devices[0]
    curves, trace = device.history.curves, device.history.trace
    _, rows = rows_of(name)
    at = np.array([row.entry for row in rows])
    assert (at[0], at[-1]) == (0, device.history.entries - 1)
    assert device.at_entry in at
    assert [row.allocated for row in rows] == curves.allocated[at + 1].tolist()
    assert [row.reserved for row in rows] == curves.reserved[at + 1].tolist()
    assert [row.allocated + row.pending for row in rows] == curves.active[at + 1].tolist()
    assert [row.time_us for row in rows] == (trace.time_us[at] - trace.time_us[device.at_entry]).tolist()


@pytest.mark.parametrize("name", SAMPLES)
def test_bands_are_those_of_the_categories(name: str):
    device = sample_findings(name).devices[0]
    spec, rows = rows_of(name)
    at, lifetimes = np.array([row.entry for row in rows]), device.history.lifetimes
    wanted = bytes_by_key(
        lifetimes.born, lifetimes.freed, device.history.size, keys_of(device).category, len(CATEGORIES), at
    )
    found = np.zeros_like(wanted)
    for number, (category, *_) in enumerate(spec["kinds"]):
        found[category] += [row.live[number] for row in rows]
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("name", SAMPLES)
def test_at_the_instant_the_parts_are_those_of_the_bar_and_the_lines_those_of_the_table(name: str):
    device = sample_findings(name).devices[0]
    spec, rows = rows_of(name)
    row = next(row for row in rows if row.entry == device.at_entry)
    live = told_of(device, str).live
    parts, lines = np.zeros(len(live.parts) + 1, np.int64), np.zeros(TOLD_SITES + EARLIER_SITES + 1, np.int64)
    for bytes_, (_, line, _, part) in zip(row.live, spec["kinds"], strict=True):
        parts[part] += bytes_
        lines[line] += bytes_
    assert parts.tolist() == [*(part.bytes for part in live.parts), 0]
    told = [use.bytes for use in device.sites[:TOLD_SITES]]
    assert lines[: len(told)].tolist() == told


def test_a_line_that_held_much_before_the_instant_is_told_as_well():
    device = sample_findings("train_ok").devices[0]
    early = replace(device, sites=device.sites[:1])
    told = told_rows(early, keys_of(early))
    assert told.told == 1
    assert {use.site for use in told.earlier} & {use.site for use in device.sites[1:]}
    assert told.key.max() == told.count
    lifetimes = device.history.lifetimes
    at = np.arange(device.history.entries)
    held = bytes_by_key(lifetimes.born, lifetimes.freed, device.history.size, told.key, told.count + 1, at)
    assert (held[1 : told.count].max(axis=1) > EARLIER_SHARE * device.history.curves.allocated.max()).all()


def test_a_short_trace_keeps_every_instant_that_changes_anything():
    device = sample_findings("oom_fragmentation").devices[0]
    spec, rows = rows_of("oom_fragmentation")
    changing = np.flatnonzero(np.diff(device.history.curves.reserved) | np.diff(device.history.curves.allocated))
    assert len(changing) <= MOST_INSTANTS
    assert set(changing.tolist()) <= {row.entry for row in rows}
    assert spec["entries"] == device.history.entries


def test_of_a_longer_trace_the_instants_are_chosen_at_once_and_the_peak_is_among_them(monkeypatch):
    device = sample_findings("oom_leak_total_loss").devices[0]
    monkeypatch.setattr(timeline_data, "MOST_INSTANTS", 1_000)
    monkeypatch.setattr(timeline_data, "MOST_CHOSEN", 800)
    spec, rows = rows_of("oom_leak_total_loss")
    assert not spec["whole"]
    assert len(rows) < 1_000 < MOST_CHOSEN
    peak = int(device.history.curves.allocated[1:].argmax())
    assert peak in {row.entry for row in rows}
    assert spec["tick"] == 1


def test_every_instant_is_there_and_where_room_is_short_times_are_rounded_first():
    device = sample_findings("oom_leak_total_loss").devices[0]
    spec, _ = rows_of("oom_leak_total_loss")
    assert spec["whole"]
    assert spec["tick"] == 1
    spec, rows = rows_of("oom_leak_total_loss", len(spec["packed"]) * 3 // 4 - 1_000)
    assert spec["whole"]
    assert spec["tick"] > 1
    time = device.history.trace.time_us
    off = [row.time_us - (int(time[row.entry]) - int(time[device.at_entry])) for row in rows]
    assert max(map(abs, off)) < spec["tick"]


def test_what_is_packed_is_bounded_and_still_exact():
    spec, rows = rows_of("oom_leak_total_loss", 1_500)
    assert not spec["whole"]
    assert len(spec["packed"]) <= 1_500 * 4 / 3 + 4
    curve = sample_findings("oom_leak_total_loss").devices[0].history.curves.allocated
    assert all(row.allocated == curve[row.entry + 1] for row in rows)
    assert max(row.allocated for row in rows) == curve.max()
