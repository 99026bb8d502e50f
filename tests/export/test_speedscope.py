"""Bytes by stack for speedscope: as its own schema has it, and true to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from oomscope.analysis import analyze
from oomscope.analysis.study import SnapshotStudy
from oomscope.commands.common.errors import run
from oomscope.export.speedscope import to_speedscope
from oomscope.history import BEFORE
from oomscope.reading import load
from tests.export.exported import ALL, IDS, exported_json, hostile_snapshot, study_of
from tests.samples import sample_path

SCHEMA = json.loads((Path(__file__).parent / "speedscope.schema.json").read_text(encoding="utf-8"))


def made(study: SnapshotStudy, **options: Any) -> Any:
    return json.loads(b"".join(to_speedscope(study, "it", **options)))


def stacks_of(file: Any, profile: Any) -> dict[tuple[str, ...], int]:
    """Weight by stack, each frame as text, outermost first."""
    names = [
        f"{frame['file']}:{frame['line']} {frame['name'].rpartition(' (')[0]}" if "file" in frame else frame["name"]
        for frame in file["shared"]["frames"]
    ]
    found: dict[tuple[str, ...], int] = {}
    for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
        path = tuple(names[frame] for frame in stack)
        found[path] = found.get(path, 0) + weight
    return found


@pytest.mark.parametrize(("name", "path"), ALL, ids=IDS)
def test_it_is_valid_and_adds_up_to_the_byte(name: str, path: Path):
    study = study_of(path)
    file = made(study)
    jsonschema.validate(file, SCHEMA)
    findings = analyze(study.snapshot, whatif=False)
    assert len(file["profiles"]) == 2 * len(study.devices)
    for number, (device, found) in enumerate(zip(study.devices, findings.devices, strict=True)):
        live, allocated = file["profiles"][2 * number : 2 * number + 2]
        history = device.history
        assert sum(live["weights"]) == live["endValue"] == found.at.allocated
        made_here = history.size[history.lifetimes.born > BEFORE]
        assert sum(allocated["weights"]) == allocated["endValue"] == int(made_here.sum())
        assert all(live["weights"])
        assert all(stack for profile in (live, allocated) for stack in profile["samples"])


def test_each_stack_has_its_own_bytes_outermost_frame_first():
    study = study_of(sample_path("oom_activations"))
    file = made(study, at="peak")
    device = study.devices[0]
    history = device.history
    most = int(np.argmax(history.curves.allocated)) + BEFORE
    expected: dict[tuple[str, ...], int] = {}
    for row in np.flatnonzero(history.lifetimes.allocated_at(most)).tolist():
        stack = study.snapshot.stacks[int(history.lifetimes.stack[row])]
        path = tuple(f"{frame.filename}:{frame.line} {frame.name}" for frame in reversed(stack))
        expected[path] = expected.get(path, 0) + int(history.size[row])
    framed = {path: weight for path, weight in stacks_of(file, file["profiles"][0]).items() if "(" not in path[0]}
    assert framed == {path: weight for path, weight in expected.items() if path}
    assert "attention (workloads.py:20)" in {frame["name"] for frame in file["shared"]["frames"]}
    assert len(framed) > 5


def test_the_instant_is_the_one_that_was_asked_for(tmp_path: Path):
    path = sample_path("oom_activations")
    names = {
        at: exported_json(path, tmp_path, "speedscope", "--at", at, "--force")["profiles"][0] for at in ("end", "9")
    }
    history = study_of(path).devices[0].history
    assert names["9"]["endValue"] == history.curves.at(9)[0]
    assert "after entry 9" in names["9"]["name"]
    assert names["end"]["endValue"] == history.layout.allocated
    assert run(["export", str(path), "--to", "speedscope", "--at", "99999999", "-o", str(tmp_path / "no")]) == 1
    assert not (tmp_path / "no").exists()


def test_hostile_names_are_escaped_and_memory_without_frames_says_why():
    text = b"".join(to_speedscope(SnapshotStudy(hostile_snapshot()), "a\x1b\ud800b"))
    file = json.loads(text.decode("ascii"))
    jsonschema.validate(file, SCHEMA)
    shown = "".join(frame["name"] + frame.get("file", "") for frame in file["shared"]["frames"]) + file["name"]
    assert shown.isprintable()
    live = stacks_of(file, file["profiles"][0])
    assert sorted(live.values()) == [2 << 20, 2 << 20]
    assert [path[0] for path in live if path[0].startswith("(")]


def test_a_redacted_export_names_nothing(tmp_path: Path):
    path = sample_path("oom_activations")
    plain = exported_json(path, tmp_path, "speedscope")
    hidden = exported_json(path, tmp_path, "speedscope", "--redact", "--force")
    assert hidden["name"] == "snapshot"
    assert sorted(hidden["profiles"][0]["weights"]) == sorted(plain["profiles"][0]["weights"])
    own = {
        frame["file"]
        for frame in plain["shared"]["frames"]
        if "site-packages" not in frame.get("file", "site-packages")
    }
    assert own
    assert not own & {frame.get("file") for frame in hidden["shared"]["frames"]}


def test_one_device_alone(tmp_path: Path):
    path = next(path for name, path in ALL if len(load(path).devices) == 1)
    assert len(exported_json(path, tmp_path, "speedscope", "--device", "0")["profiles"]) == 2
    assert run(["export", str(path), "--to", "speedscope", "--device", "7", "-o", str(tmp_path / "no")]) == 1
