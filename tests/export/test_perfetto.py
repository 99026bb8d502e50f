"""Traces for Perfetto: by the rules of the Trace Event Format, and with every byte of the curves."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.study import SnapshotStudy
from oomscope.export.perfetto import COUNTERS, to_perfetto
from oomscope.history import BEFORE
from oomscope.model import Snapshot
from oomscope.reading import load
from tests.builders import block, entry, loaded, segment
from tests.export.exported import ALL, IDS, exported_json, hostile_snapshot, study_of
from tests.samples import sample_path
from tests.shared import captures, needs_shared, recorded, shared_snapshot

Event = dict[str, Any]
_ANY = {"ph", "pid", "name"}
_NEEDS = {
    "M": {"args"},
    "C": {"ts", "args"},
    "X": {"ts", "dur", "tid", "args"},
    "i": {"ts", "tid", "s"},
    "b": {"ts", "cat", "id2"},
    "e": {"ts", "cat", "id2"},
}
_METADATA = {"process_name": "name", "process_sort_index": "sort_index", "thread_name": "name"}
_METADATA |= {"thread_sort_index": "sort_index"}


def made(study: SnapshotStudy) -> Any:
    return json.loads(b"".join(to_perfetto(study)))


def events_of(file: Any, *phases: str) -> list[Event]:
    return [event for event in file["traceEvents"] if event["ph"] in phases]


def check_rules(file: Any) -> None:
    """What the Trace Event Format asks of each event, and of events together."""
    assert set(file) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert file["displayTimeUnit"] in ("ms", "ns")
    named = {(event["pid"], event.get("tid")) for event in events_of(file, "M")}
    owner: dict[int, int] = {}
    for event in file["traceEvents"]:
        assert event.keys() >= _ANY | _NEEDS[event["ph"]], event
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert event["pid"] > 0
        assert (event["pid"], None) in named, "a process without a name"
        assert all(isinstance(event[key], int) for key in ("ts", "dur", "tid") if key in event)
        assert event.get("ts", 0) >= -1
        if "tid" in event:
            assert (event["pid"], event["tid"]) in named, "a track without a name"
            assert owner.setdefault(event["tid"], event["pid"]) == event["pid"]
    for event in events_of(file, "M"):
        assert set(event["args"]) == {_METADATA[event["name"]]}
    for event in events_of(file, "C"):
        assert [type(value) for value in event["args"].values()] == [int]
    assert all(event["s"] in ("g", "p", "t") for event in events_of(file, "i"))
    check_slices(events_of(file, "X"))
    check_pairs(events_of(file, "b", "e"))


def check_slices(slices: list[Event]) -> None:
    """Slices of one track lie one after another, or within each other."""
    tracks: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for event in slices:
        assert event["dur"] >= 0
        tracks[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        around: list[int] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while around and around[-1] <= begin:
                around.pop()
            assert not around or end <= around[-1], "slices overlap"
            around.append(end)


def check_pairs(events: list[Event]) -> None:
    """Each begins once and ends at most once; numbers are those of the process."""
    opened: dict[tuple[str, int, str], Event] = {}
    for event in events:
        key = (event["cat"], event["pid"], event["id2"]["local"])
        if event["ph"] == "b":
            assert key not in opened
            opened[key] = event
        else:
            begun = opened.pop(key)
            assert (begun["name"], begun["pid"]) == (event["name"], event["pid"])
            assert begun["ts"] <= event["ts"]


def check_figures(file: Any, study: SnapshotStudy) -> None:
    """The last value at each time is that of the curve once all entries of that time have happened."""
    for device in study.devices:
        history, pid = device.history, device.index + 1
        count = history.recorded
        time = np.maximum.accumulate(history.trace.time_us[:count]) if history.trace.timed else np.arange(count)
        for name in COUNTERS:
            mine = [event for event in events_of(file, "C") if event["pid"] == pid and event["name"] == name]
            curve = getattr(history.curves, name)
            assert mine[0]["args"]["bytes"] == curve[0]
            assert [event["ts"] for event in mine] == sorted(event["ts"] for event in mine)
            if not count:
                continue
            last = {event["ts"]: event["args"]["bytes"] for event in mine}
            ends = np.flatnonzero(np.append(time[1:] != time[:-1], True))
            expected = dict(zip(time[ends].tolist(), curve[ends + 1].tolist(), strict=True))
            assert {at: expected[at] for at in last if at in expected} == {
                at: last[at] for at in last if at in expected
            }
            assert max(event["args"]["bytes"] for event in mine) == curve[: count + 1].max()
            assert len(mine) == 2 + np.count_nonzero(np.diff(curve[: count + 1]))


@pytest.mark.parametrize("path", [path for _, path in ALL], ids=IDS)
def test_it_keeps_to_the_format_and_to_the_byte(path: Path):
    study = study_of(path)
    file = made(study)
    check_rules(file)
    check_figures(file, study)


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *recorded()])
def test_it_does_on_real_runs(name: str):
    study = SnapshotStudy(shared_snapshot(name))
    file = made(study)
    check_rules(file)
    check_figures(file, study)


def test_steps_phases_and_passes_are_slices_with_what_they_held():
    study = study_of(sample_path("train_ok"))
    device = study.devices[0]
    slices = events_of(made(study), "X")
    steps = [event for event in slices if event["name"].startswith("step ")]
    assert [event["args"]["peak_allocated"] for event in steps] == [one.peak_allocated for one in device.steps.steps]
    assert len(steps) > 2
    assert {"forward", "backward", "optimizer"} <= {event["name"] for event in slices}
    sums = [event["args"] for event in slices if "allocated_bytes" in event["args"]]
    births = device.history.lifetimes.born > BEFORE
    assert sum(one["allocated_bytes"] for one in sums) == int(device.history.size[births].sum())
    assert sum(one["allocations"] for one in sums) == int(births.sum())
    passes = [event["args"] for event in slices if " pass " in event["name"]]
    allocated = device.history.curves.allocated
    assert passes
    for one in passes:
        assert one["end_allocated"] == allocated[one["last_entry"] + 1]
        assert one["peak_allocated"] == allocated[one["first_entry"] + 1 : one["last_entry"] + 2].max()


def test_an_oom_is_an_instant_at_its_time(tmp_path: Path):
    path = sample_path("oom_fragmentation")
    (oom,) = [one for one in events_of(exported_json(path, tmp_path, "perfetto"), "i") if one["name"].startswith("OOM")]
    trace = load(path).devices[0].trace
    assert oom["ts"] == trace.time_us[-1]
    assert oom["args"]["requested"] == trace.size[-1]
    assert oom["args"]["device_free"] == trace.address[-1]
    assert oom["args"]["entry"] == len(trace) - 1
    assert oom["args"]["stack"]


def test_hostile_names_stay_text():
    text = b"".join(to_perfetto(SnapshotStudy(hostile_snapshot())))
    file = json.loads(text.decode("ascii"))
    check_rules(file)
    (oom,) = events_of(file, "i")
    assert all(line.isprintable() for line in oom["args"]["stack"])


def annotated(*marks: tuple[str, str, int]) -> Snapshot:
    trace = [{**entry("alloc", 0x7F0000000000 + (n << 21), 2 << 20), "time_us": 1000 + n} for n in range(5)]
    notes = [{"stage": stage, "name": name, "device": 0, "time_us": time} for stage, name, time in marks]
    return loaded([segment(0x7F0000000000, [block(2 << 20) for _ in range(5)])], [trace], external_annotations=notes)


def test_marks_of_the_program_and_earlier_snapshots_are_instants():
    trace = [{**entry("alloc", 0x7F0000000000, 2 << 20), "time_us": 1000}]
    trace.append({**entry("snapshot", 0, 2 << 20), "time_us": 1005})
    context = {"schema_version": 1, "marks": [{"name": "eval\x1b[31m", "time_us": 1003}]}
    study = SnapshotStudy(loaded([segment(0x7F0000000000, [block(2 << 20)])], [trace], oomscope=context))
    file = made(study)
    check_rules(file)
    found = {one["name"]: (one["ts"], one["s"]) for one in events_of(file, "i")}
    assert found == {"eval\\x1b[31m": (1003, "g"), "snapshot": (1005, "t")}


def test_ranges_within_ranges_and_those_that_overlap_are_paired_by_name():
    marks = [("START", "a", 1000), ("START", "b", 1001), ("START", "a", 1001), ("END", "a", 1002), ("END", "a", 1003)]
    file = made(SnapshotStudy(annotated(("END", "lost", 1000), *marks, ("END", "b", 1004), ("START", "open", 1004))))
    check_rules(file)
    begun = {event["id2"]["local"]: event["ts"] for event in events_of(file, "b")}
    ended = sorted((event["name"], begun[event["id2"]["local"]], event["ts"]) for event in events_of(file, "e"))
    assert ended == [("a", 1000, 1003), ("a", 1001, 1002), ("b", 1001, 1004)]
    assert {event["name"] for event in events_of(file, "b")} == {"a", "b", "open"}


def test_without_times_an_entry_is_a_microsecond_and_no_range_is_drawn():
    trace = [entry("alloc", 0x7F0000000000 + (n << 21), 2 << 20) for n in range(5)]
    for item in trace:
        del item["time_us"]
    notes = [{"stage": "START", "name": "a", "device": 0, "time_us": 5}]
    blocks = [block(2 << 20) for _ in range(5)]
    study = SnapshotStudy(loaded([segment(0x7F0000000000, blocks)], [trace], external_annotations=notes))
    file = made(study)
    check_rules(file)
    check_figures(file, study)
    assert file["otherData"]["clock"] == {"cuda:0": "entries"}
    assert not events_of(file, "b", "e")
    points = [(one["ts"], one["args"]["bytes"]) for one in events_of(file, "C") if one["name"] == "allocated"]
    assert points == [(-1, 0), *((n, (n + 1) * (2 << 20)) for n in range(5)), (4, 10 << 20)]


@pytest.mark.parametrize("traces", [[], [[]]])
def test_a_snapshot_without_a_trace_shows_what_there_is(traces: list[Any]):
    file = made(SnapshotStudy(loaded([segment(0x7F0000000000, [block(2 << 20)])], traces)))
    check_rules(file)
    assert {event["args"]["bytes"] for event in events_of(file, "C")} == {2 << 20}
    assert made(SnapshotStudy(Snapshot((), load(sample_path("train_ok")).stacks)))["traceEvents"] == []
