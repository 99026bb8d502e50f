"""The command line: what it prints where, what it refuses, and how."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from importlib import import_module, util
from pathlib import Path

import pytest

from oomscope.commands import COMMANDS
from oomscope.commands.common import pipeline
from oomscope.commands.common.errors import DONE, FAILED, USAGE, run
from oomscope.commands.common.output import stem
from tests.samples import BUNDLED, sample, sample_path

FRAGMENTED = str(sample_path("oom_fragmentation"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_line_error(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("name", COMMANDS)
def test_short_helps_are_those_of_the_commands(name: str):
    module = f"oomscope.commands.{name.replace('-', '_')}"
    if util.find_spec(module) is None:
        pytest.skip(f"{module} is not there")
    assert import_module(module).command.get_short_help_str(limit=1000) == COMMANDS[name]


def test_help_lists_every_command_and_imports_none():
    code = (
        "import sys; from oomscope.commands.common.errors import run; run(['--help']);"
        "heavy = {'numpy', 'rich', 'jinja2', 'matplotlib', 'torch', 'oomscope.reading', 'oomscope.commands.report'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]):
    assert run([]) == DONE
    assert "Commands:" in capsys.readouterr().out


def test_html_goes_to_a_file_named_after_the_snapshot(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["report", FRAGMENTED, "--no-whatif"]) == DONE
    assert (folder / "oom_fragmentation.html").read_text(encoding="utf-8").startswith("<!")
    assert capsys.readouterr().out == ""
    assert [path.name for path in folder.iterdir()] == ["oom_fragmentation.html"]


@pytest.mark.parametrize("form", ["md", "json", "text"])
def test_other_formats_go_to_stdout(form: str, capsys: pytest.CaptureFixture[str]):
    assert run(["report", FRAGMENTED, "--no-whatif", "-f", form]) == DONE
    out, err = capsys.readouterr()
    assert "Enough memory was free, but fragmented" in " ".join(out.split())
    assert err == ""


def test_a_report_is_not_overwritten_without_force(folder: Path, capsys: pytest.CaptureFixture[str]):
    target = folder / "out.txt"
    target.write_text("mine")
    arguments = ["report", FRAGMENTED, "--no-whatif", "-f", "text", "-o", str(target)]
    assert run(arguments) == FAILED
    assert "--force" in one_line_error(capsys)
    assert target.read_text() == "mine"
    assert run([*arguments, "--force"]) == DONE
    assert target.read_text(encoding="utf-8").startswith("Out of memory")


def test_the_snapshot_itself_is_never_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]):
    copy = folder / "copy.pickle.xz"
    copy.write_bytes(sample_path("oom_fragmentation").read_bytes())
    assert run(["report", str(copy), "-f", "md", "-o", str(copy), "--force"]) == FAILED
    assert "the snapshot itself" in one_line_error(capsys)


def test_a_dash_is_stdin_and_stdout(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]):
    done = subprocess.run(
        [sys.executable, "-m", "oomscope", "report", "-", "-f", "json", "--no-whatif", "-o", "-"],
        input=sample_path("oom_fragmentation").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["devices"][0]["oom"]["verdict"]["cause"] == "fragmentation"
    assert done.stderr == b""


def filtered(arguments: list[str], folder: Path) -> bytes:
    """What comes out of stdout when the sample goes into stdin; nothing may come into being in `folder`."""
    done = subprocess.run(
        [sys.executable, "-m", "oomscope", *arguments],
        input=sample_path("oom_fragmentation").read_bytes(),
        capture_output=True,
        check=True,
        cwd=folder,
    )
    assert done.stderr == b""
    assert list(folder.iterdir()) == []
    return done.stdout


def test_of_a_snapshot_from_stdin_the_result_goes_to_stdout(tmp_path: Path):
    from oomscope.reading import load

    assert filtered(["report", "-", "--no-whatif"], tmp_path).startswith(b"<!DOCTYPE html>")
    assert load(io.BytesIO(filtered(["export", "-", "--to", "memory-viz"], tmp_path))).entries == 2974
    assert load(io.BytesIO(filtered(["export", "-", "--to", "json", "--redact"], tmp_path))).entries == 2974
    with zipfile.ZipFile(io.BytesIO(filtered(["report", "-", "--no-whatif", "--bundle", "-"], tmp_path))) as archive:
        assert "snapshot.pickle" in archive.namelist()


@pytest.mark.parametrize("arguments", [["report", "-"], ["export", "-", "--to", "memory-viz"]])
def test_a_terminal_is_not_flooded(
    arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert run(arguments) == USAGE
    assert "-o" in one_line_error(capsys)
    assert list(folder.iterdir()) == []


def test_an_export_without_o_is_named_after_its_snapshot(folder: Path):
    assert run(["export", FRAGMENTED, "--to", "memory-viz"]) == DONE
    assert run(["export", FRAGMENTED, "--to", "json", "--redact"]) == DONE
    names = {"oom_fragmentation.export.pickle", "oom_fragmentation.redacted.json"}
    assert {path.name for path in folder.iterdir()} == names


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["report", "missing.pickle"], FAILED, "no such file"),
        (["report", "."], FAILED, "directory"),
        (["summary", FRAGMENTED, "--device", "7"], FAILED, "7"),
        (["report", FRAGMENTED, "--at", "99999999", "-f", "md"], FAILED, "99999999"),
        (["report", FRAGMENTED, "--at", "yesterday"], USAGE, "yesterday"),
        (["report", FRAGMENTED, "-f", "pdf"], USAGE, "pdf"),
        (["report", FRAGMENTED, "-f", "md", "--open"], USAGE, "--open"),
        (["report", FRAGMENTED, "--redact-key", "key.json"], USAGE, "--redact"),
        (["report", FRAGMENTED, "--bundle", "a.zip", "-o", "b.html"], USAGE, "--bundle"),
        (["report"], USAGE, "SNAPSHOT"),
        (["nonsense"], USAGE, "nonsense"),
        (["demo", "nonsense"], FAILED, "oom_fragmentation"),
        (["report", FRAGMENTED, "-o", "nowhere/at/all.html"], FAILED, "all.html"),
        (["report", "a\nb\x1b[31m.pickle"], FAILED, "no such file"),
    ],
)
def test_errors_are_one_line(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]):
    assert run(arguments) == code
    error = one_line_error(capsys)
    assert words in error
    assert "\x1b" not in error


def _fail(*_: object, **__: object) -> None:
    raise ZeroDivisionError("oh")


def test_a_bug_is_one_sentence_and_a_traceback_only_with_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("oomscope.analysis.analyze", _fail)
    assert run(["summary", FRAGMENTED]) == FAILED
    assert "a bug in oomscope" in one_line_error(capsys)
    assert run(["summary", FRAGMENTED, "--debug"]) == FAILED
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise on Windows")
def test_a_reader_that_leaves_is_no_error():
    command = [sys.executable, "-m", "oomscope", "report", FRAGMENTED, "-f", "json", "--no-whatif"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == DONE


def test_summary_is_plain_when_piped(capsys: pytest.CaptureFixture[str]):
    assert run(["summary", FRAGMENTED]) == DONE
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 120


def test_demo_lists_the_samples_with_what_they_show(capsys: pytest.CaptureFixture[str]):
    assert run(["demo"]) == DONE
    lines = capsys.readouterr().out.splitlines()
    for name in BUNDLED:
        assert any(line.startswith(f"{name} ") and len(line.split()) > 2 for line in lines)


def test_demo_writes_a_report_here_and_says_what_it_found(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["demo", "train_ok"]) == DONE
    out = capsys.readouterr().out
    assert "No OOM: allocated memory peaked" in out
    assert "train_ok.html" in out
    assert (folder / "train_ok.html").stat().st_size > 10_000
    assert run(["demo", "train_ok"]) == FAILED


def test_redact_writes_its_key_where_asked(folder: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["report", FRAGMENTED, "-f", "md", "--no-whatif", "--redact", "--redact-key", "key.json"]
    assert run(arguments) == DONE
    assert "fill_cache" not in capsys.readouterr().out
    assert "fill_cache" in json.loads((folder / "key.json").read_text()).values()


def test_a_bundle_holds_every_format_and_a_snapshot_that_can_be_read(folder: Path):
    from oomscope.reading import load

    assert run(["report", FRAGMENTED, "--no-whatif", "--redact", "--bundle", "ticket.zip"]) == DONE
    with zipfile.ZipFile(folder / "ticket.zip") as archive:
        assert set(archive.namelist()) == {"README.txt", "report.html", "report.md", "report.json", "snapshot.pickle"}
        assert all(b"fill_cache" not in archive.read(name) for name in archive.namelist())
        with archive.open("snapshot.pickle") as file:
            assert load(io.BytesIO(file.read())).entries == 2974


@pytest.mark.parametrize("form", ["memory-viz", "json"])
def test_an_export_reads_back_as_the_same_snapshot(form: str, folder: Path):
    import numpy as np

    from oomscope.reading import load

    assert run(["export", FRAGMENTED, "--to", form, "-o", "out"]) == DONE
    one, other = load(FRAGMENTED), load("out")
    for name in ("action", "address", "size", "stream", "time_us"):
        assert np.array_equal(getattr(one.devices[0].trace, name), getattr(other.devices[0].trace, name))
    assert one.devices[0].layout.allocated == other.devices[0].layout.allocated
    assert [one.stacks[at] for at in one.devices[0].trace.stack[:50]] == [
        other.stacks[at] for at in other.devices[0].trace.stack[:50]
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("runs/oom.rank0.pickle.xz", "oom.rank0"),
        ("snapshot.pkl", "snapshot"),
        ("-", "snapshot"),
        ("plot.html", "plot"),
        ("noend", "noend"),
    ],
)
def test_stem(name: str, shown: str):
    assert stem(name) == shown


def test_progress_is_silent_where_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch):
    from oomscope.commands.common.progress import Progress

    sink = io.StringIO()
    monkeypatch.setattr(sys, "stderr", sink)
    with Progress() as progress:
        progress.read(1, 2, 3)
        progress.stage("findings")
        progress.tell("replaying", 0.5, "recorded")
    assert sink.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_what_is_done_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch):
    from oomscope.commands.common import progress as module

    sink = Terminal()
    monkeypatch.setattr(sys, "stderr", sink)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    with module.Progress() as progress:
        deadline = time.monotonic() + 10
        while progress._bar is None and time.monotonic() < deadline:
            time.sleep(0.01)
        progress.tell("replaying", 0.5, "expandable_segments:True")
        time.sleep(0.3)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", sink.getvalue())
    assert re.search(r"Replaying expandable_segments:True \S+ +50%", shown)
    assert sink.getvalue().endswith("\x1b[2K"), "the line is cleared at the end"


def test_what_takes_less_than_a_second_shows_no_progress(monkeypatch: pytest.MonkeyPatch):
    from oomscope.commands.common.progress import Progress

    sink = Terminal()
    monkeypatch.setattr(sys, "stderr", sink)
    with Progress() as progress:
        progress.tell("replaying", 0.5)
    assert sink.getvalue() == ""


def test_the_summary_of_a_short_trace_rests_on_a_replay_that_it_does_not_list(capsys: pytest.CaptureFixture[str]):
    assert run(["summary", FRAGMENTED]) == DONE
    out = " ".join(capsys.readouterr().out.split())
    assert "Replayed with" not in out, "a setting under which the request fails as well changes nothing"
    assert "Not tried on this recording" not in out
    assert "What other settings would have done" not in out


def test_the_summary_replays_all_settings_or_none_if_told(capsys: pytest.CaptureFixture[str]):
    assert run(["summary", "--whatif", FRAGMENTED]) == DONE
    assert "What other settings would have done" in capsys.readouterr().out
    assert run(["summary", "--no-whatif", FRAGMENTED]) == DONE
    assert "Replayed" not in capsys.readouterr().out


def test_settings_skipped_when_the_time_is_spent_are_named(capsys: pytest.CaptureFixture[str]):
    assert run(["report", "-f", "text", "--whatif-seconds", "0", FRAGMENTED]) == DONE
    out = " ".join(capsys.readouterr().out.split())
    assert "Skipped, time budget spent: max_split_size_mb:128" in out
    assert "expandable_segments:True" in out


def test_a_bundle_takes_no_format_of_its_own(capsys: pytest.CaptureFixture[str]):
    assert run(["report", FRAGMENTED, "--bundle", "ticket.zip", "-f", "md"]) == USAGE
    assert "cannot be combined with -o or -f" in capsys.readouterr().err


def test_the_summary_of_a_long_trace_says_that_nothing_was_replayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(pipeline, "QUICK_ENTRIES", 100)
    assert run(["summary", FRAGMENTED]) == DONE
    out = capsys.readouterr().out
    assert "replay other settings: --whatif" in " ".join(out.splitlines()[-2:])
    assert "Replayed" not in out


def test_source_is_read_from_the_folder_that_is_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    files = folder / "src"
    files.mkdir()
    (files / "workloads.py").write_text("\n".join(f"source_{number} = 1" for number in range(1, 400)))
    assert run(["report", FRAGMENTED, "-o", "a.html", "--no-whatif", "--source", str(files)]) == DONE
    assert run(["report", FRAGMENTED, "-o", "b.html", "--no-whatif"]) == DONE
    assert "source_227 = 1" in (folder / "a.html").read_text(encoding="utf-8")
    assert "source_227 = 1" not in (folder / "b.html").read_text(encoding="utf-8")
    capsys.readouterr()


@pytest.mark.parametrize(
    "arguments",
    [["summary"], ["summary", "--full"], ["report", "-f", "md"], ["report", "-f", "text"]],
)
def test_every_format_for_people_quotes_the_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
):
    files = folder / "src"
    files.mkdir()
    (files / "workloads.py").write_text("\n".join(f"source_{number} = 1" for number in range(1, 400)))
    command, *options = arguments
    assert run([command, FRAGMENTED, *options, *(["--no-whatif"] if command == "report" else [])]) == DONE
    assert "source_227" not in capsys.readouterr().out
    more = ["--no-whatif"] if command == "report" else []
    assert run([command, FRAGMENTED, *options, *more, "--source", str(files)]) == DONE
    assert "source_227 = 1" in capsys.readouterr().out


@pytest.mark.parametrize("other", ["--no-source", "--redact"])
@pytest.mark.parametrize("command", [["report", FRAGMENTED, "-o", "a.html"], ["summary", FRAGMENTED]])
def test_source_contradicts_leaving_it_out(
    folder: Path, capsys: pytest.CaptureFixture[str], other: str, command: list[str]
):
    assert run([*command, "--source", str(folder), other]) == USAGE
    assert "--source cannot be combined" in capsys.readouterr().err
    assert not (folder / "a.html").exists()


def test_lines_of_the_dump_can_be_left_out():
    snapshot = replace(sample("oom_fragmentation"), context={"schema_version": 1, "sources": [{"text": ["secret"]}]})
    assert pipeline.without_source(snapshot).context == {"schema_version": 1}
    assert pipeline.without_source(sample("oom_fragmentation")) is sample("oom_fragmentation")
