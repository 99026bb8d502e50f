"""A window of a recording: its curves are those of the whole, in oomscope and in torch's own viewer."""

from __future__ import annotations

import io
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.commands.common.errors import run
from oomscope.errors import RequestError
from oomscope.export import memory_viz
from oomscope.export.window import EntryRange, cut, windows
from oomscope.history import BEFORE
from oomscope.model import Action, IntArray
from oomscope.reading import load
from tests.builders import block, entry, loaded, segment
from tests.export.exported import ALL, IDS, exported, study_of
from tests.export.viewer import drawn
from tests.samples import bundled_path, sample_path
from tests.shared import captures, needs_shared, recorded, shared_snapshot, unpacked

WINDOWS = ("95%:100%", "30%:60%", "peak:", ":peak", ":", "0:0")


def requested(device: DeviceStudy) -> IntArray:
    """Bytes asked for by active blocks, at the start and after each entry: a running sum over lifetimes."""
    lifetimes, entries = device.history.lifetimes, device.history.entries
    change = np.zeros(entries + 2, np.int64)
    size = np.maximum(lifetimes.requested, 0)
    np.add.at(change, lifetimes.born - BEFORE, size)
    np.subtract.at(change, lifetimes.gone - BEFORE, size)
    return np.cumsum(change)[: entries + 1]


def check(study: SnapshotStudy, text: str) -> int:
    """Compare the curves; the bytes of the file."""
    parts = windows(study, text)
    content = memory_viz.to_pickle(cut(study, parts))
    plain = pickle.loads(content)
    other = SnapshotStudy(load(io.BytesIO(content)))
    for device, part in zip(study.devices, parts, strict=True):
        rows = slice(part.first, part.last + 2)
        if device.index not in {one.index for one in other.devices}:  # it has nothing yet
            assert not device.history.curves.reserved[rows].any()
            assert part.last < part.first
            continue
        again = other.device(device.index).history
        for name in ("allocated", "active", "reserved"):
            assert np.array_equal(getattr(device.history.curves, name)[rows], getattr(again.curves, name)), name
        held, got = drawn(plain, device.index)
        assert held == requested(device)[rows].tolist()
        assert got == device.history.curves.reserved[rows].tolist()
    return len(content)


@pytest.mark.parametrize("path", [path for _, path in ALL], ids=IDS)
def test_its_curves_are_those_of_the_whole(path: Path):
    study = study_of(path)
    for text in WINDOWS:
        check(study, text)


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *recorded()])
def test_its_curves_are_those_of_the_whole_on_real_runs(name: str):
    study = SnapshotStudy(shared_snapshot(name))
    if any(len(device.trace) > 100 for device in study.snapshot.devices):
        check(study, "40%:70%")
        check(study, "95%:")


@needs_shared
def test_the_last_twentieth_of_a_long_run_is_a_small_file_with_the_same_curves():
    study = SnapshotStudy(load(unpacked("big_history")))
    (part,) = windows(study, "95%:100%")
    assert part.first == -(-study.devices[0].history.entries * 95 // 100)
    assert check(study, "95%:100%") < unpacked("big_history").stat().st_size / 10


@pytest.mark.torch
def test_torch_opens_it(tmp_path: Path):
    viz = pytest.importorskip("torch.cuda._memory_viz")
    path = exported(sample_path("oom_fragmentation"), tmp_path, "memory-viz", "--window", "30%:60%")
    plain = pickle.loads(path.read_bytes())
    assert "snapshot.pickle" in viz.trace_plot(plain)
    assert "snapshot.pickle" in viz.segment_plot(plain)
    assert viz.segsum(plain)
    assert f"{len(plain['device_traces'][0])} entries" in viz.trace(plain)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0%:50%", (0, 1486)),
        ("50%:100%", (1487, 2973)),
        ("33.3%:", (991, 2973)),
        ("100:200", (100, 200)),
        (":", (0, 2973)),
        ("end:", (2973, 2973)),
        (":oom", (0, 2973)),
    ],
)
def test_bounds(text: str, expected: tuple[int, int]):
    (found,) = windows(study_of(sample_path("oom_fragmentation")), text)
    assert (found.first, found.last) == expected


def test_shares_that_meet_hold_every_entry_once():
    study = study_of(sample_path("oom_fragmentation"))
    parts = [windows(study, f"{low}%:{low + 7}%")[0] for low in range(0, 98, 7)] + [windows(study, "98%:100%")[0]]
    assert {after.first - before.last for before, after in pairwise(parts)} == {1}
    assert (parts[0].first, parts[-1].last) == (0, 2973)


@pytest.mark.parametrize("text", ["", "5", "1:2:3", "200:100", "99999999:", "150%:", "yesterday:", "100%:"])
def test_what_is_no_window_is_refused(text: str):
    with pytest.raises(RequestError):
        windows(study_of(sample_path("oom_fragmentation")), text)


@pytest.mark.parametrize(
    ("text", "code"), [("nonsense", 2), ("200:100", 2), ("99999999:", 2), ("150%:", 2), ("95%", 2), ("-3:5", 2)]
)
def test_the_command_says_so_and_writes_nothing(text: str, code: int, tmp_path: Path):
    output = tmp_path / "out"
    path = str(sample_path("oom_fragmentation"))
    assert run(["export", path, "--to", "memory-viz", "--window", text, "-o", str(output)]) == code
    assert list(tmp_path.iterdir()) == []


MIB, BASE = 1 << 20, 0x7F0000000000


def two_devices(*, timed: bool = True) -> SnapshotStudy:
    """Device 1 allocates at odd moments, device 0 at even ones; all of it stays."""
    traces: list[list[dict[str, Any]]] = [[], []]
    for number in range(20):
        item = entry("alloc", BASE + number // 2 * 2 * MIB, 2 * MIB)
        traces[number % 2].append({**item, "time_us": 1000 + number})
        if not timed:
            del traces[number % 2][-1]["time_us"]
    blocks = [block(2 * MIB) for _ in range(10)]
    segments = [segment(BASE, blocks, device=index) for index in (0, 1)]
    return SnapshotStudy(loaded(segments, traces))


def test_on_other_devices_the_same_time_is_meant():
    study = two_devices()
    assert [(part.first, part.last) for part in windows(study, "2:5")] == [(2, 5), (2, 4)]
    both = cut(study, windows(study, "2:5"))
    assert [len(device.trace) for device in both.devices] == [4, 3]
    assert [device.layout.allocated for device in both.devices] == [12 * MIB, 10 * MIB]
    check(study, "2:5")


def test_without_times_a_device_must_be_named():
    study = two_devices(timed=False)
    with pytest.raises(RequestError, match="--device"):
        windows(study, "2:5")
    assert [(part.first, part.last) for part in windows(study, ":")] == [(0, 9), (0, 9)]


def test_a_window_is_marked_as_a_ring_that_lost_what_came_before():
    study = study_of(sample_path("oom_fragmentation"))
    assert study.history_kind == "full"
    for text, kind in (("50%:", "wrapped"), (":50%", "full"), (":", "full")):
        assert SnapshotStudy(cut(study, windows(study, text))).history_kind == kind


def test_what_tells_of_the_dump_alone_does_not_go_with_an_earlier_window():
    study = study_of(bundled_path("oom_backward"))
    whole = study.snapshot.context
    assert whole is not None
    assert {"tensors", "request", "devices"} <= whole.keys()
    last = cut(study, windows(study, "50%:")).context
    assert last == whole
    early = cut(study, windows(study, ":50%")).context
    assert early is not None
    assert not early.keys() & {"tensors", "request", "exception", "holders", "stacks", "walk", "reason"}
    assert {"torch", "process", "recording"} <= early.keys()
    assert early["devices"][0]["total"] == whole["devices"][0]["total"]
    assert "free" not in early["devices"][0]


def test_an_oom_stays_in_the_window_that_holds_it():
    study = study_of(sample_path("oom_fragmentation"))
    with_it = cut(study, windows(study, "oom:")).devices[0].trace
    assert with_it.entries(Action.OOM).tolist() == [0]
    without = cut(study, (EntryRange(0, 2972),)).devices[0].trace
    assert not len(without.entries(Action.OOM))
