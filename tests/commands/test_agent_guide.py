"""The guide for agents is true: its commands run, its keys are there, its causes are all there are."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from oomscope.analysis.records import CAUSES
from oomscope.commands.agents.guide import guide
from oomscope.commands.common.errors import DONE, run
from tests.samples import bundled_path

COMMANDS = re.findall(r"^\$ (oomscope .+)$", guide(), re.MULTILINE)
READING = [command for command in COMMANDS if not command.startswith("oomscope run")]
RUNNING = [command for command in COMMANDS if command.startswith("oomscope run")]
FILES = {"oom.pickle": "oom_leak_total_loss", "before.pickle": "ddp.rank0", "after.pickle": "train_ok"}
LEDGER = Path(__file__).parents[1] / "ledger" / "fixtures"
AT_TWO_BATCHES = {"small.pickle": "lstm", "larger.pickle": "lstm.b64"}
"""Recordings of which one has twice the other's batch."""
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB."
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, sample in FILES.items():
        (tmp_path / name).write_bytes(bundled_path(sample).read_bytes())
    for name, recording in AT_TWO_BATCHES.items():
        (tmp_path / name).write_bytes((LEDGER / f"{recording}.pickle.xz").read_bytes())
    (tmp_path / "train.log").write_text(f"step 1\n{MESSAGE}\n")
    (tmp_path / "train.py").write_text("print('trained')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def output(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    # The line of the guide is one of its own program; that of the sample stands in another file.
    words = shlex.split(command.replace("train.py:12", "oom_leak_total_loss.py:25"))
    assert run(words[1:]) == DONE
    return capsys.readouterr().out


def test_there_are_commands_to_run():
    assert len(READING) > 8
    assert len(RUNNING) == 2


@pytest.mark.parametrize("command", READING)
def test_every_command_that_reads_works_and_gives_json_with_next(command: str, capsys: pytest.CaptureFixture[str]):
    assert json.loads(output(command, capsys))["next"]


@pytest.mark.torch
@pytest.mark.parametrize("command", RUNNING)
def test_every_command_that_runs_works(command: str):
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr


def test_the_keys_that_it_names_are_in_the_documents(capsys: pytest.CaptureFixture[str]):
    summary = json.loads(output("oomscope summary oom.pickle -f json", capsys))
    section = guide().partition("## 2.")[2].partition("| cause")[0]
    for key in re.findall(r"^- `(\w+)`", section, re.MULTILINE):
        assert key in summary, key
    assert set(re.findall(r"`(at|saves_bytes|enough|price)`", section)) <= set(summary["fixes"][0])
    assert "let_go_at" in summary["suspects"][0]
    report = json.loads(output("oomscope report oom.pickle -f json", capsys))
    for key in re.findall(r"`devices\[\]\.(\w+)`", guide()):
        assert key in report["devices"][0]
    log = json.loads(output("oomscope explain train.log -f json", capsys))
    assert {"proves", "cannot_tell", "next"} <= set(log["messages"][0])
    row = json.loads(output("oomscope whatif oom.pickle --setting expandable_segments:True -f json", capsys))["whatif"][
        0
    ]
    assert {"oom", "exact"} <= set(row)
    asked = next(one for one in COMMANDS if one.startswith("oomscope plan small.pickle --at"))
    plan = json.loads(output(asked, capsys))
    assert plan["largest"][0]["value"] > 0
    assert plan["predictions"][0]["cards"][0]["gpu"] == "cap 8.00 GiB"


def test_it_names_every_cause_and_no_other():
    assert set(re.findall(r"^\| `(\w+)`", guide(), re.MULTILINE)) == set(CAUSES)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]):
    assert run(["agent-guide"]) == DONE
    assert capsys.readouterr().out == guide()
    assert guide().startswith("---\nname: oomscope\ndescription: ")
    assert len(guide()) < 6_500
