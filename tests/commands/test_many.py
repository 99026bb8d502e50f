"""``oomscope ranks``, ``triage`` and ``digest`` on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from oomscope.commands.common.errors import DONE, FAILED, run
from oomscope.rendering.many import RANKS_SCHEMA, TRIAGE_SCHEMA
from tests.commands.test_commands import one_line_error
from tests.rendering.test_diff import strict
from tests.samples import sample_path

NAMES = ("train_ok", "oom_fragmentation", "train_ok")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    job = tmp_path / "job"
    job.mkdir()
    for number, name in enumerate(NAMES):
        shutil.copy(sample_path(name), job / f"oom_rank{number}.pickle.xz")
    return tmp_path


def valid(schema: Path, text: str) -> dict:
    document = json.loads(text)
    jsonschema.validate(document, strict(json.loads(schema.read_text(encoding="utf-8"))))
    return document


def test_a_folder_of_ranks_is_read_in_processes_and_one_bad_file_keeps_none_from_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "job" / "oom_rank3.pickle").write_text("no snapshot")
    assert run(["ranks", "job", "-f", "json"]) == DONE
    out, err = capsys.readouterr()
    document = valid(RANKS_SCHEMA, out)
    assert [one["rank"] for one in document["ranks"]] == [0, 1, 2]
    assert document["first"] == 1
    assert [Path(one["file"]).name for one in document["bad_files"]] == ["oom_rank3.pickle"]
    assert err.startswith("Warning: job/oom_rank3.pickle")
    assert err.count("\n") == 1


def test_text_says_who_and_where(capsys: pytest.CaptureFixture[str]):
    assert run(["ranks", "job/oom_rank0.pickle.xz", "job/oom_rank1.pickle.xz"]) == DONE
    out = capsys.readouterr().out
    assert out.startswith("Rank 1 ran out of memory first.")
    assert "fill_cache" in out
    assert max(map(len, out.splitlines())) <= 120


def test_a_pattern_is_expanded_here_too(capsys: pytest.CaptureFixture[str]):
    assert run(["ranks", "job/*rank[02]*", "-f", "json"]) == DONE
    assert [one["rank"] for one in json.loads(capsys.readouterr().out)["ranks"]] == [0, 2]


def test_digests_of_digests_answer_as_the_snapshots_do(folder: Path, capsys: pytest.CaptureFixture[str]):
    for number in range(3):
        assert run(["digest", f"job/oom_rank{number}.pickle.xz", "-o", f"{number}.digest.json"]) == DONE
    assert run(["digest", "0.digest.json", "1.digest.json", "-o", "both.digest.json"]) == DONE
    capsys.readouterr()
    assert run(["ranks", "2.digest.json", "both.digest.json", "-f", "json"]) == DONE
    from_digests = capsys.readouterr().out
    assert run(["ranks", "job", "-f", "json"]) == DONE
    assert capsys.readouterr().out == from_digests
    assert (folder / "0.digest.json").stat().st_size < 20_000


def test_triage_puts_the_same_together(capsys: pytest.CaptureFixture[str]):
    assert run(["triage", "job", "-f", "json"]) == DONE
    document = valid(TRIAGE_SCHEMA, capsys.readouterr().out)
    assert [(one["cause"], one["count"]) for one in document["groups"]] == [("fragmentation", 1), (None, 2)]
    assert run(["triage", "job"]) == DONE
    assert "3 dumps of 2 kinds." in capsys.readouterr().out


@pytest.mark.parametrize("name", ["ranks", "triage", "digest"])
def test_where_nothing_can_be_read_it_fails_in_one_line(name: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run([name, "nowhere.pickle"]) == FAILED
    assert "nowhere.pickle" in one_line_error(capsys)
    (folder / "empty").mkdir()
    assert run([name, "empty"]) == FAILED
    assert "no snapshot" in one_line_error(capsys)
    (folder / "bad.digest.json").write_text('{"kind": "oomscope digest", "schema_version": 7}')
    assert run([name, "bad.digest.json"]) == FAILED
    assert "digest" in one_line_error(capsys)


@pytest.mark.parametrize("arguments", [["ranks", "job"], ["triage", "job", "-f", "json"], ["digest", "job"]])
def test_redacted_no_name_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert run([*arguments, "--redact"]) == DONE
    out = capsys.readouterr().out
    assert "fill_cache" not in out
    assert "workloads" not in out
    assert "oom_rank" not in out


def test_ranks_are_a_page_too(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "job" / "oom_rank3.pickle").write_text("no snapshot")
    assert run(["ranks", "job", "-o", "all.html"]) == DONE
    assert run(["ranks", "job", "-f", "html"]) == DONE
    page = (folder / "ranks.html").read_text(encoding="utf-8")
    assert (folder / "all.html").read_text(encoding="utf-8") == page
    assert "<h1>Rank 1 ran out of memory first.</h1>" in page
    assert "oom_rank3.pickle" in page
    capsys.readouterr()
    assert run(["ranks", "job", "-f", "html"]) == FAILED
    assert "ranks.html" in one_line_error(capsys)
    assert run(["ranks", "job", "-o", "redacted.html", "--redact"]) == DONE
    redacted = (folder / "redacted.html").read_text(encoding="utf-8")
    for name in ("fill_cache", "workloads", "oom_rank"):
        assert name not in redacted


def test_without_a_format_the_suffix_tells_it(folder: Path):
    for command in ("ranks", "triage"):
        assert run([command, "job", "-o", f"{command}.json"]) == DONE
        assert json.loads((folder / f"{command}.json").read_text(encoding="utf-8"))["schema_version"] == 1
