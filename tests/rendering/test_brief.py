"""One screen of a terminal: twenty lines at eighty columns, with the verdict, the fix, the holders and the curve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.commands.common.errors import run
from oomscope.reading import load
from oomscope.rendering.common.shares import shares
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html.culprit import culprit
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
    assert "saves 10.1 GiB · enough alone" in shown(sample_findings("oom_leak_total_loss"))


@pytest.mark.parametrize("most", [1, 2, 3, 10])
def test_holders_come_first_and_the_rows_add_up(most: int) -> None:
    findings = analyze(load(next(path for path in FIXTURES if path.name.startswith("leak_hook"))), whatif=False)
    device = findings.main
    assert device is not None
    rows = shares(device, shortener(findings.snapshot.stacks), most)
    assert len(rows) <= most
    assert sum(row.bytes for row in rows) == device.at.allocated
    if most > 1:
        assert rows[0].text == "model.blocks[2].captured"


def test_the_smallest_parts_are_told_together() -> None:
    findings = sample_findings("oom_activations")
    device = findings.main
    assert device is not None
    few, all_ = (shares(device, shortener(findings.snapshot.stacks), most) for most in (3, 100))
    assert len(few) == 3 < len(all_)
    assert {row.bytes for row in few[:2]} == set(sorted(row.bytes for row in all_[:-1])[-2:])


def test_the_line_is_quoted_where_the_dump_has_it() -> None:
    findings = sample_findings("oom_leak_total_loss")
    device = findings.main
    assert device is not None
    line = culprit(device, shortener(findings.snapshot.stacks), Sources())
    assert line is not None
    assert line.excerpt is None
    file = line.full.rpartition(":")[0]
    text = ["for batch in loader:", "    loss = step(batch)", ""]
    source = {"filename": file, "line": line.line, "first": line.line - 1, "text": text}
    told = replace(findings, snapshot=replace(findings.snapshot, context={"sources": [source]}))
    assert f"  {line.file}:{line.line}  loss = step(batch)" in check(told)
    assert "loss = step(batch)" not in check(findings)


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
