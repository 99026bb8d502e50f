"""One screen of a terminal: twenty lines at eighty columns, with the verdict, the fix, the holders and the curve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.commands.common.errors import run
from oomscope.model.recorded import RecordedSource
from oomscope.reading import load
from oomscope.rendering.common.shares import shares
from oomscope.rendering.common.source_line import source_of, telling_line
from oomscope.rendering.text.brief import LINES, brief
from oomscope.rendering.text.terminal import plain
from oomscope.wording.paths import shortener
from oomscope.wording.verdict_text import headline
from tests.rendering.hostile import hostile_findings
from tests.samples import SAMPLES, sample_findings, sample_path

FIXTURES = sorted((Path(__file__).parents[1] / "recording" / "fixtures").glob("*.pickle.xz"))
CAPTURES = sorted((Path(__file__).parents[1] / "captures").glob("*.pickle.xz"))


def shown(findings: Findings, width: int = 80) -> str:
    return plain(brief(findings, width=width), width)


def check(findings: Findings) -> str:
    text = shown(findings)
    assert len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= 80
    assert "None" not in text
    return text


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_fits_one_screen(name: str) -> None:
    findings = sample_findings(name)
    text = " ".join(check(findings).split())
    device = findings.main
    assert device is not None
    if device.oom is not None:
        assert headline(device.oom.verdict).partition(". ")[0] in text
        assert "Fix" in text
        assert "OOM" in text
        assert "limit" in text


@pytest.mark.parametrize("path", [*CAPTURES, *FIXTURES], ids=lambda path: path.name.partition(".")[0])
def test_a_capture_fits_one_screen(path: Path) -> None:
    check(analyze(load(path), whatif=False))


def test_hostile_names_move_no_cursor() -> None:
    text = check(hostile_findings())
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_fix_says_what_it_saves_and_whether_it_is_enough() -> None:
    assert "Saves 10.1 GiB, enough alone." in shown(sample_findings("oom_leak_total_loss"))


def test_suspects_come_first_and_the_rows_add_up() -> None:
    findings = analyze(load(next(path for path in FIXTURES if path.name.startswith("leak_hook"))), whatif=False)
    device = findings.main
    assert device is not None
    rows = shares(device, shortener(findings.snapshot.stacks), 4)
    assert rows[0].text.startswith("leak_hook: model.blocks[2].captured (")
    assert rows[-1].text == "everything else"
    assert sum(row.bytes for row in rows) == device.at.allocated


def test_the_line_is_quoted_where_the_dump_has_it() -> None:
    findings = sample_findings("oom_leak_total_loss")
    device = findings.main
    assert device is not None
    assert device.oom is not None
    line = device.oom.caller
    assert line is not None
    source = RecordedSource(line.file, line.line, line.line - 1, ("for batch in loader:", "    loss = step(batch)", ""))
    snapshot = replace(findings.snapshot, context={"sources": [_plain(source)]})
    assert source_of(snapshot, line) == "loss = step(batch)"
    assert source_of(snapshot, replace(line, line=line.line + 2)) is None
    assert source_of(findings.snapshot, line) is None
    found = telling_line(snapshot, device)
    assert found is not None
    assert found[1] == "loss = step(batch)"
    assert "loss = step(batch)" in check(replace(findings, snapshot=snapshot))


def _plain(source: RecordedSource) -> dict[str, object]:
    return {"filename": source.filename, "line": source.line, "first": source.first, "text": list(source.text)}


def test_the_command_shows_one_screen_unless_asked_for_all(capfd: pytest.CaptureFixture[str]) -> None:
    path = str(sample_path("oom_fragmentation"))
    assert run(["summary", path, "--no-whatif"]) == 0
    short = capfd.readouterr().out
    assert run(["summary", path, "--no-whatif", "--full"]) == 0
    full = capfd.readouterr().out
    assert len(short.splitlines()) <= LINES < len(full.splitlines())
    assert "replay other settings: --whatif" in short


def test_names_can_be_redacted(capfd: pytest.CaptureFixture[str]) -> None:
    path = str(sample_path("oom_fragmentation"))
    assert run(["summary", path, "--no-whatif", "--redact"]) == 0
    text = capfd.readouterr().out
    assert "fill_cache" not in text
    assert "function_" in text
