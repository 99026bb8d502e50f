"""``oomscope check`` on the command line: exit codes, files and formats."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from oomscope.commands.check import BROKEN
from oomscope.commands.common.errors import DONE, FAILED, USAGE, run
from oomscope.rendering.check import CHECK_SCHEMA
from tests.commands.test_commands import one_line_error
from tests.rendering.test_diff import strict
from tests.samples import sample_path

OK, OTHER = str(sample_path("train_ok")), str(sample_path("oom_fragmentation"))
SCHEMA = json.loads(CHECK_SCHEMA.read_text(encoding="utf-8"))
toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    code = run(["check", *arguments, "-f", "json"])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, strict(SCHEMA))
    return code, found


def test_a_kept_budget_is_0_and_a_broken_one_3_with_its_line(capsys: pytest.CaptureFixture[str]):
    assert run(["check", OK, "--max-peak", "4GiB"]) == DONE
    assert "Within its budget." in capsys.readouterr().out
    assert run(["check", OK, "--max-peak", "3GiB", "--max-reserved", "20 GiB"]) == BROKEN
    out, err = capsys.readouterr()
    assert "1 of 2 budgets broken." in out
    assert "mlp (workloads.py:29)" in out
    assert err == ""


def test_the_document_is_valid_and_says_who(capsys: pytest.CaptureFixture[str]):
    arguments = [
        OK,
        "--max-site",
        "workloads.py:29=1MiB",
        "--max-category",
        "activations=9GiB",
        "--max-growth",
        "1/pass",
    ]
    code, found = document(arguments, capsys)
    assert (code, found["ok"]) == (BROKEN, False)
    (one,) = found["broken"]
    assert (one["budget"], one["name"], one["limit"]) == ("site", "workloads.py:29", 1 << 20)
    assert one["by"]["site"]["line"] == 29
    assert one["by"]["bytes"] <= one["found"]
    assert {row["budget"] for row in found["checked"]} == {"site", "category", "growth_per_pass"}


def test_junit_has_a_case_for_each_budget(capsys: pytest.CaptureFixture[str]):
    assert run(["check", OK, "--max-peak", "1GiB", "--max-reserved", "9GiB", "-f", "junit"]) == BROKEN
    suite = ElementTree.fromstring(capsys.readouterr().out).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "over 1.00 GiB" in str(failure.get("message"))


def test_github_gets_an_annotation_at_the_line(capsys: pytest.CaptureFixture[str]):
    assert run(["check", OK, "--max-site", "workloads.py:29=1MiB", "-f", "github"]) == BROKEN
    assert capsys.readouterr().out.startswith("::error file=workloads.py,line=29,title=GPU memory::")
    assert run(["check", OK, "--max-peak", "1TiB", "-f", "github"]) == DONE
    assert capsys.readouterr().out.startswith("::notice title=GPU memory::")


def test_a_baseline_is_saved_kept_and_broken(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["check", OK, "--save-baseline", "memory.json"]) == DONE
    assert (folder / "memory.json").stat().st_size < 10_000
    assert run(["check", OK, "--save-baseline", "memory.json"]) == FAILED
    capsys.readouterr()
    assert run(["check", OK, "--baseline", "memory.json", "--tolerance", "0%"]) == DONE
    assert run(["check", OTHER, "--baseline", "memory.json"]) == BROKEN
    assert "fill_cache" in capsys.readouterr().out


@toml
def test_a_budget_file_says_the_same_and_options_go_before_it(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "budget.toml").write_text(
        '[budget]\nmax_peak = "4 GiB"\nmax_fragmentation = "10%"\ntolerance = "5%"\n'
        '[budget.site]\n"workloads.py:29" = "1 GiB"\n[budget.category]\nactivation = 2_000_000_000\n'
    )
    code, found = document([OK, "--budget", "budget.toml"], capsys)
    assert code == DONE
    assert [row["budget"] for row in found["checked"]] == ["peak_allocated", "fragmentation", "site", "category"]
    assert run(["check", OK, "--budget", "budget.toml", "--max-peak", "1GiB"]) == BROKEN


@toml
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "[budget]"),
        ("[budget]\nmax_peek = 1", "max_peek"),
        ("[budget]\nsite = 3", "[budget.site]"),
        ("[budget", "cannot be read"),
        ('[budget]\nbaseline = "nowhere.json"', "nowhere.json"),
    ],
)
def test_a_budget_file_that_is_wrong_is_refused(
    text: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "budget.toml").write_text(text)
    assert run(["check", OK, "--budget", "budget.toml"]) == FAILED
    assert words in one_line_error(capsys)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], USAGE, "nothing to check"),
        (["--max-peak", "much"], USAGE, "'much'"),
        (["--max-site", "workloads.py:29"], USAGE, "NAME=BYTES"),
        (["--max-category", "everything=1GiB"], USAGE, "everything"),
        (["--max-peak", "1GiB", "--tolerance", "some"], USAGE, "some"),
        (["--baseline", "nowhere.json"], FAILED, "nowhere.json"),
        (["--budget", "nowhere.toml"], FAILED, "nowhere.toml"),
        (["--max-peak", "1GiB", "--device", "9"], FAILED, "device 9"),
    ],
)
def test_errors_are_one_line(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]):
    assert run(["check", OK, *arguments]) == code
    assert words in one_line_error(capsys)


def test_what_a_recording_cannot_tell_does_not_pass(folder: Path, capsys: pytest.CaptureFixture[str]):
    import pickle

    from tests.builders import block, segment, snapshot

    (folder / "bare.pickle").write_bytes(pickle.dumps(snapshot([segment(1 << 40, [block(1 << 21)])], [[]])))
    assert run(["check", "bare.pickle", "--max-peak", "1TiB", "-o", "out.txt"]) == FAILED
    assert "not known" in capsys.readouterr().err
    assert run(["check", "bare.pickle", "--save-baseline", "b.json"]) == FAILED
    assert "timeline" in one_line_error(capsys)


def test_redacted_it_asks_of_the_real_names_and_prints_none(folder: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["check", OK, "--max-site", "workloads.py:29=1MiB", "--max-peak", "1MiB", "--redact"]
    assert run([*arguments, "--redact-key", "key.json"]) == BROKEN
    out = capsys.readouterr().out
    assert "2 of 2 budgets broken." in out
    assert "workloads" not in out
    assert "train_ok" not in out
    assert "mlp" in json.loads((folder / "key.json").read_text()).values()
