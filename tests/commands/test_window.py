"""``--window`` of report and summary: the figures of a part of the trace are those of the whole over it."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oomscope.analysis import analyze
from oomscope.analysis.study import SnapshotStudy
from oomscope.commands.common.errors import run
from oomscope.commands.common.windows import only, within
from oomscope.export.window import windows
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.wording.window import shown_part
from tests.export.exported import ALL, IDS
from tests.export.test_window import two_devices
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


def numbers(document: Any, found: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Every number in a report that names an entry, by its place."""
    if isinstance(document, dict):
        for key, item in document.items():
            if (
                key in ("entry", "boundaries")
                or key.endswith("_entry")
                or ("peak_entry" in document and key in ("begin", "end"))
            ):
                found[f"{path}/{key}"] = item
            else:
                numbers(item, found, f"{path}/{key}")
    elif isinstance(document, list):
        for number, item in enumerate(document):
            numbers(item, found, f"{path}/{number}")
    return found


def test_entries_have_the_numbers_of_the_whole(capsys: pytest.CaptureFixture[str]):
    whole, part = document(FRAGMENTED, capsys), document(FRAGMENTED, capsys, "--window", "95%:")
    assert part["snapshot"]["window"] == [
        {"device": 0, "first": 2826, "last": 2973, "entries": 2974, "allocates_later": False}
    ]
    assert whole["snapshot"]["window"] is None
    assert part["at"] == whole["at"]
    named = [entry for entry in numbers(part, {}).values() if not isinstance(entry, list)]
    assert len(named) > 5
    assert all(entry == -1 or 2826 <= entry <= 2973 for entry in named)
    small = document(FRAGMENTED, capsys, "--window", "95%:", command="summary")
    assert small["request"]["entry"] == 2973
    assert small["peak"]["allocated_entry"] == part["devices"][0]["peak"]["allocated_entry"]


def test_the_numbers_of_steps_and_peaks_are_those_of_the_whole(capsys: pytest.CaptureFixture[str]):
    path = sample_path("train_ok")
    whole = document(path, capsys)["devices"][0]
    part = document(path, capsys, "--window", "30%:")["devices"][0]
    first = document(path, capsys, "--window", "30%:")["snapshot"]["window"][0]["first"]
    later = {begin for begin in whole["steps"]["boundaries"] if begin > first}
    assert later
    assert later <= set(part["steps"]["boundaries"]) | {min(later)}
    curve = SnapshotStudy(load(path)).devices[0].history.curves.allocated
    assert curve[part["peak"]["allocated_entry"] + 1] == part["peak"]["allocated"]
    for step in part["steps"]["steps"]:
        assert curve[step["peak_entry"] + 1] == step["peak_allocated"]
        assert step["begin"] <= step["peak_entry"] <= step["end"]


SAID = "Only entries 2,826 to 2,973 of 0 to 2,973 are shown"


@pytest.mark.parametrize("form", ["html", "md", "text"])
def test_a_report_says_that_it_is_of_a_part(form: str, capsys: pytest.CaptureFixture[str]):
    assert run(["report", str(FRAGMENTED), "-f", form, "-o", "-", "--no-whatif", "--window", "95%:"]) == 0
    text = capsys.readouterr().out
    assert SAID in " ".join(text.split())
    assert "2,973" in text
    assert "ring buffer" not in text
    assert "This is a part of the recording" in " ".join(text.split())


@pytest.mark.parametrize("options", [[], ["--full"]])
def test_the_summary_says_so_too(options: list[str], capsys: pytest.CaptureFixture[str]):
    assert run(["summary", str(FRAGMENTED), "--window", "95%:", *options]) == 0
    text = capsys.readouterr().out
    assert SAID in " ".join(text.split())
    assert "entry, 2,973)" in " ".join(text.split())
    if not options:
        assert len(text.splitlines()) <= 20


@pytest.mark.parametrize("command", ["report", "summary"])
def test_of_a_whole_recording_nothing_of_it_is_said(command: str, capsys: pytest.CaptureFixture[str]):
    """``:`` is all of it."""
    options = ["-f", "md", "--no-whatif"] if command == "report" else ["--full", "--no-whatif"]
    assert run([command, str(FRAGMENTED), *options]) == 0
    plain = capsys.readouterr().out
    assert run([command, str(FRAGMENTED), *options, "--window", ":"]) == 0
    assert capsys.readouterr().out == plain
    assert "are shown" not in plain


def test_a_part_that_ends_early_claims_nothing_of_what_follows(capsys: pytest.CaptureFixture[str]):
    assert run(["summary", str(FRAGMENTED), "--window", ":50%", "--at", "end"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "No out-of-memory error in this part" in text
    assert "at the last entry shown" in text


def test_redacted_it_has_no_name_of_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plain = document(FRAGMENTED, capsys, "--window", "95%:")
    key = tmp_path / "key.json"
    part = document(FRAGMENTED, capsys, "--window", "95%:", "--redact", "--redact-key", str(key))
    assert "workloads" in json.dumps(plain)
    assert "workloads" not in json.dumps(part)
    assert part["devices"][0]["peak"] == plain["devices"][0]["peak"]
    assert part["snapshot"]["window"] == plain["snapshot"]["window"]
    assert any("workloads" in name for name in json.loads(key.read_text()).values())


def test_of_several_devices_each_has_its_part():
    study = two_devices()
    findings = analyze(only(study.snapshot, "2:5", 1), whatif=False)
    assert [(one.part.first, one.part.last) for one in findings.devices if one.part] == [(3, 5), (2, 5)]
    assert [one.peak.allocated for one in findings.devices if one.peak] == [12 << 20, 12 << 20]
    assert within(findings.snapshot, 4, 1) == (2, 1)
    assert within(findings.snapshot, 4, 0) == (1, 0)
    assert "of device" in str(shown_part(findings))


def test_of_a_file_that_was_cut_off_the_last_entry_is_not_called_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    content = lzma.decompress(FRAGMENTED.read_bytes())
    short = tmp_path / "short.pickle"
    short.write_bytes(content[: len(content) * 9 // 10])
    assert run(["summary", str(short), "--window", "50%:"]) == 0
    said = capsys.readouterr()
    text = " ".join(said.out.split())
    assert "At the last entry shown, at least" in text
    assert "When the snapshot was taken" not in text
    assert "cut off" in said.err
    assert document(short, capsys, "--window", "50%:")["snapshot"]["recording"]["cut"] is True
