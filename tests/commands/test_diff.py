"""``oomscope diff`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomscope.commands.common.errors import DONE, FAILED, USAGE, run
from tests.commands.test_commands import one_line_error
from tests.samples import sample_path

BEFORE, AFTER = str(sample_path("train_ok")), str(sample_path("oom_fragmentation"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_text_goes_to_stdout_and_a_page_to_a_file(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["diff", BEFORE, AFTER]) == DONE
    out, err = capsys.readouterr()
    assert "allocated at the peak" in out
    assert err == ""
    assert run(["diff", BEFORE, AFTER, "-f", "html"]) == DONE
    assert (folder / "train_ok.to.oom_fragmentation.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run(["diff", BEFORE, AFTER, "-o", "d.json"]) == DONE
    assert json.loads((folder / "d.json").read_text())["before"]["file"] == "train_ok.pickle.xz"


def test_the_same_file_twice_has_not_changed(capsys: pytest.CaptureFixture[str]):
    assert run(["diff", BEFORE, BEFORE]) == DONE
    assert "Nothing changed." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["missing.pickle", AFTER], FAILED, "missing.pickle"),
        ([BEFORE], USAGE, "AFTER"),
        ([BEFORE, AFTER, "--at", "oom"], FAILED, "train_ok.pickle.xz: No OOM"),
        ([BEFORE, AFTER, "--at", "yesterday"], USAGE, "yesterday"),
        ([BEFORE, AFTER, "--device", "5"], FAILED, "device 5"),
        (["-", "-"], USAGE, "standard input"),
        ([BEFORE, AFTER, "-f", "md", "--open"], USAGE, "--open"),
        ([BEFORE, AFTER, "-o", AFTER, "--force"], FAILED, "the snapshot itself"),
        ([BEFORE, AFTER, "--redact-key", "key.json"], USAGE, "--redact"),
    ],
)
def test_errors_are_one_line(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]):
    assert run(["diff", *arguments]) == code
    assert words in one_line_error(capsys)


def test_redacted_names_are_the_same_on_both_sides(folder: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["diff", BEFORE, AFTER, "--redact", "-f", "json", "--redact-key", "key.json"]
    assert run(arguments) == DONE
    out, _ = capsys.readouterr()
    assert "workloads" not in out
    assert "fill_cache" not in out
    assert "train_ok" not in out
    assert "fill_cache" in json.loads((folder / "key.json").read_text()).values()
    capsys.readouterr()
    assert run(["diff", BEFORE, BEFORE, "--redact"]) == DONE
    assert "Nothing changed." in capsys.readouterr().out
