"""``--window`` of report and summary: the figures of a part of the trace are those of the whole over it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oomscope.analysis import analyze
from oomscope.analysis.study import SnapshotStudy
from oomscope.commands.common.errors import run
from oomscope.commands.common.windows import only
from oomscope.export.window import windows
from oomscope.model import Snapshot
from oomscope.reading import load
from tests.export.exported import ALL, IDS
from tests.samples import sample, sample_path
from tests.shared import captures, needs_shared, recorded, shared_snapshot, unpacked

FRAGMENTED = sample_path("oom_fragmentation")
"""2,974 entries, the last of which is the OOM."""


def document(path: Path, capsys: pytest.CaptureFixture[str], *options: str, command: str = "report") -> dict[str, Any]:
    whatif = ["--no-whatif"] if command == "report" else []
    assert run([command, str(path), "-f", "json", *whatif, *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def check(snapshot: Snapshot, text: str) -> None:
    """Compare curves, peaks, and what is allocated and reserved at the end of the part."""
    study = SnapshotStudy(snapshot)
    findings = analyze(only(snapshot, text), whatif=False)
    for device, part in zip(study.devices, windows(study, text), strict=True):
        found = next(one for one in findings.devices if one.device == device.index)
        rows = slice(part.first, part.last + 2)
        whole = {name: getattr(device.history.curves, name)[rows] for name in ("allocated", "active", "reserved")}
        for name, curve in whole.items():
            assert np.array_equal(curve, getattr(found.history.curves, name)), name
        assert found.usage.allocated == whole["allocated"][-1]
        assert found.usage.reserved == whole["reserved"][-1]
        assert sum(found.categories.values()) == found.at.allocated
        assert sum(site.bytes for site in found.sites) == found.at.allocated
        assert found.reconciliation.unaccounted_bytes == 0
        if found.peak is not None:
            assert found.peak.allocated == whole["allocated"].max()
            assert found.peak.reserved == whole["reserved"].max()


@pytest.mark.parametrize("path", [path for _, path in ALL], ids=IDS)
def test_its_figures_are_those_of_the_whole(path: Path):
    snapshot = load(path)
    for text in ("95%:", "30%:60%", ":peak"):
        check(snapshot, text)


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *recorded()])
def test_its_figures_are_those_of_the_whole_on_real_runs(name: str):
    snapshot = shared_snapshot(name)
    if any(len(device.trace) > 100 for device in snapshot.devices):
        check(snapshot, "95%:")


@needs_shared
def test_the_last_twentieth_of_a_long_run():
    check(load(unpacked("big_history")), "95%:")


def test_what_is_left_out_is_not_kept():
    whole = sample("oom_fragmentation")
    (device,) = only(whole, "95%:").devices
    assert device.trace.action.base is None
    assert device.trace.address.nbytes < whole.devices[0].trace.address.nbytes / 10


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "is no window"),
        ("95%", "is no window"),
        ("", "is no window"),
        ("1:2:3", "is no window"),
        ("200:100", "holds no entry"),
        ("100%:", "holds no entry"),
        ("150%:", "more than the whole trace"),
        ("99999999:", "ends at 2,973"),
    ],
)
@pytest.mark.parametrize("command", ["report", "summary"])
def test_what_is_no_window_is_refused(
    command: str, text: str, words: str, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert run([command, str(FRAGMENTED), "--window", text]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert words in said.err
    assert "--window" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_window_without_the_oom_that_it_begins_at_is_refused(capsys: pytest.CaptureFixture[str]):
    assert run(["summary", str(sample_path("train_ok")), "--window", "oom:"]) == 2
    assert "No OOM is in this snapshot's trace" in capsys.readouterr().err


def test_an_instant_is_an_entry_of_the_whole(capsys: pytest.CaptureFixture[str]):
    whole = document(FRAGMENTED, capsys, "--at", "2900")
    part = document(FRAGMENTED, capsys, "--at", "2,900", "--window", "95%:")
    assert part["at"]["time_us"] == whole["at"]["time_us"]
    assert part["devices"][0]["at"] == whole["devices"][0]["at"]
    assert part["devices"][0]["fragmentation"] == whole["devices"][0]["fragmentation"]
    assert run(["report", str(FRAGMENTED), "--at", "7", "--window", "95%:", "-o", "-"]) == 1
    assert "Entry 7 is not in the window, which holds entries 2,826 to 2,973" in capsys.readouterr().err


def test_the_oom_in_the_part_is_judged_as_in_the_whole(capsys: pytest.CaptureFixture[str]):
    whole, part = document(FRAGMENTED, capsys), document(FRAGMENTED, capsys, "--window", "95%:")
    ours, theirs = part["devices"][0]["oom"], whole["devices"][0]["oom"]
    assert ours["verdict"]["cause"] == theirs["verdict"]["cause"] == "fragmentation"
    assert ours["limit"] == theirs["limit"]
    assert part["at"]["kind"] == "oom"


def test_without_the_oom_there_is_none(capsys: pytest.CaptureFixture[str]):
    part = document(FRAGMENTED, capsys, "--window", ":2972")
    assert part["devices"][0]["oom"] is None
    assert part["at"]["kind"] == "peak"


def test_an_oom_that_the_run_outlived_after_the_part_is_recovered():
    snapshot = next(
        one
        for one in map(load, (path for _, path in ALL))
        if any(f.recovered for f in analyze(one, whatif=False).devices[0].ooms)
    )
    whole = analyze(snapshot, whatif=False).devices[0].ooms
    entry = next(one.entry for one in whole if one.recovered)
    (oom, *_) = analyze(only(snapshot, f"{entry}:{entry}"), whatif=False).devices[0].ooms
    assert oom.recovered
