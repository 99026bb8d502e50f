"""Every command speaks JSON, and says which commands would tell more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomscope.commands import COMMANDS
from oomscope.commands.common.errors import DONE, USAGE, run
from tests.samples import bundled_path

OOM, OK = str(bundled_path("oom_activations")), str(bundled_path("train_ok"))
RANKS = [str(bundled_path("ddp.rank0")), str(bundled_path("ddp.rank1"))]
ASKED: dict[str, list[str]] = {
    "report": [OOM, "--no-whatif"],
    "summary": [OOM],
    "whatif": [OOM, "--setting", "expandable_segments:True", "--least-memory", "none"],
    "plan": [OK, "--at", "batch=4", "--for", "batch=8"],
    "diff": RANKS,
    "check": [OK, "--max-peak", "100GiB"],
    "ranks": RANKS,
    "triage": [OOM],
    "digest": [OOM],
    "explain": ["CUDA out of memory. Tried to allocate 2.00 GiB"],
    "demo": [],
}
OTHERS = {"run", "export", "mcp", "agent-guide", "schema"}
"""A program's own output, a file, a protocol, a text."""


def test_every_command_is_asked():
    assert ASKED.keys() | OTHERS == COMMANDS.keys()


@pytest.mark.parametrize("name", ASKED)
def test_it_prints_one_document_with_next(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run([name, *ASKED[name], "-f", "json"]) == DONE
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] >= 1
    assert document["next"]
    assert all("oomscope " in command for command in document["next"])
    assert list(tmp_path.iterdir()) == []


def test_the_demo_of_a_sample_is_its_summary(capsys):
    assert run(["demo", "oom_activations", "-f", "json"]) == DONE
    shown = capsys.readouterr().out
    assert run(["summary", OOM, "-f", "json"]) == DONE
    assert shown == capsys.readouterr().out


def test_a_summary_takes_the_log_of_the_engine_along(tmp_path: Path, capsys):
    log = tmp_path / "server.log"
    log.write_text(
        "INFO starting\nValueError: Free memory on device (59.32/79.15 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.24 GiB). Decrease GPU memory utilization.\n"
    )
    assert run(["summary", OOM, "--log", str(log), "-f", "json"]) == DONE
    document = json.loads(capsys.readouterr().out)
    assert [(one["kind"], one["line"]) for one in document["log"]] == [("serving-budget", 2)]
    assert document["cause"]
    assert list(document)[-1] == "next"
    assert run(["summary", OOM, "--log", str(log)]) == DONE
    shown = capsys.readouterr().out
    assert shown.startswith("Out of memory")
    assert "19.83 GiB of the card's 79.15 GiB was in use before the engine started" in " ".join(shown.split())
    assert run(["summary", OOM, "--log", str(log), "--redact"]) == USAGE
