"""Changed programs: their rows, and what is said to be changed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from oomscope.allocator.program import Op
from oomscope.analysis.study import study_device
from oomscope.analysis.whatif import EXPANDABLE, whatif
from oomscope.analysis.whatif.changes import Changes, ProgramMarks, changed_program, parse_scaling
from oomscope.analysis.whatif.preparation import prepared
from oomscope.analysis.whatif.program_parts import program_parts
from oomscope.commands.common.errors import run
from oomscope.errors import RequestError
from oomscope.model import Action
from oomscope.wording.whatif_table import notes_text
from tests import builders
from tests.samples import sample, sample_path
from tests.whatif.recorder import Recorder

MIB = 1 << 20
LOG = [builders.frame("log", 17, "/workspace/metrics.py")]


def three(conf: str = "") -> Recorder:
    recorder = Recorder(conf)
    for name in range(3):
        recorder.malloc(name, 30 * MIB, frames=LOG)
    return recorder


def test_a_run_recorded_with_expandable_segments_has_one_changed_row() -> None:
    rows = whatif(three(EXPANDABLE).snapshot(), 0, scale=["metrics.py:17=2"]).rows
    assert [row.setting for row in rows] == ["recorded", "recorded, metrics.py:17 × 2"]


def test_the_settings_of_changed_rows_stand_beside_the_recorded_ones() -> None:
    row = whatif(three("roundup_power2_divisions:4").snapshot(), 0, scale=["metrics.py:17=2"]).rows[2]
    assert "other settings as recorded (roundup_power2_divisions:4)" in notes_text(row)


def test_a_changed_row_says_which_setting_is_too_new() -> None:
    row = whatif(three().snapshot(), 0, scale=["metrics.py:17=2"], settings=["large_segment_size_mb:40"]).rows[-1]
    assert "large_segment_size needs torch 2.11" in notes_text(row)


def test_only_what_outlives_its_step_counts_as_given_back() -> None:
    recorder = three()
    begins = [0, len(recorder.entries)]
    recorder.malloc(5, 30 * MIB, frames=LOG)
    recorder.free(5)
    row = whatif(recorder.snapshot(), 0, free=["metrics.py"], steps=begins).rows[1]
    assert "3 allocations of metrics.py freed at the end of their step" in notes_text(row)


@pytest.mark.parametrize("factor", ["1e30", "1e300", "1e9"])
def test_a_factor_beyond_any_device_is_refused(factor: str) -> None:
    with pytest.raises(RequestError, match="asks for more than any device has"):
        whatif(three().snapshot(), 0, scale=[f"metrics.py:17={factor}"])


@pytest.mark.parametrize("place", ["log (metrics.py:17)", "log (workspace/metrics.py:17)", "metrics.py:17 (log)"])
def test_a_place_is_taken_as_the_report_prints_it(place: str) -> None:
    recorder = three()
    recorder.malloc(7, 30 * MIB, frames=[builders.frame("other", 17, "/workspace/metrics.py")])
    row = whatif(recorder.snapshot(), 0, without=[place]).rows[1]
    assert row.peak_reserved == 30 * MIB
    assert parse_scaling(f"{place}=0.5").site.line == 17


@pytest.mark.parametrize("name", ["optimizer state", "optimizer_state"])
def test_a_category_is_scaled_by_its_name(name: str) -> None:
    groups = {"optimizer state": np.array([False, True, True])}
    row = whatif(three().snapshot(), 0, scale=[f"{name}=0.5"], phases=groups).rows[1]
    assert row.peak_reserved == (30 + 2 * 16) * MIB
    assert f"2 allocations of {name} scaled by 0.5" in notes_text(row)


GROWS = "Memory grows by 325 MiB per step in this recording: more memory only delays the failure."


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_more_memory_for_a_leak_only_delays_the_failure(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--setting", EXPANDABLE, "--gpu", "H200", "--least-memory", "none", "-f", form]
    assert run(["whatif", str(sample_path("oom_leak_total_loss")), *asked]) == 0
    out = capsys.readouterr().out
    assert GROWS in " ".join(out.split())
    if form == "json":
        assert json.loads(out)["notes"] == [GROWS]


def test_what_does_not_grow_has_no_such_warning(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--scale", "activations=0.5", "--least-memory", "none", "-f", "json"]
    assert run(["whatif", str(sample_path("train_ok")), *asked]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["notes"] == []
    recorded, halved = document["whatif"][:2]
    assert halved["peak_reserved"] < recorded["peak_reserved"]


@pytest.mark.parametrize("with_request", [True, False])
def test_scaling_the_activations_scales_the_request_that_failed(with_request: bool) -> None:
    """Half of the batch asks for half: the request that was refused is one of its activations."""
    study = study_device(sample("oom_activations"), 0)
    failed = int(study.history.trace.size[study.history.trace.entries(Action.OOM)[-1]])
    parts = program_parts(study)
    served = len(study.history.lifetimes)
    assert parts["activation"][served:].tolist() == [True]
    assert parts["forward"][served:].tolist() == [True]
    group = parts["activation"] if with_request else parts["activation"][:served]
    subject = prepared(study)
    program, _ = changed_program(
        subject,
        ProgramMarks(study.snapshot.stacks, {"activation": group}),
        Changes(scale=(parse_scaling("activation=0.5"),)),
    )
    asked = program.size[program.argument[program.op == Op.TRY_MALLOC]]
    assert asked.tolist() == [failed // 2 if with_request else failed]
