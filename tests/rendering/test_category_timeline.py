"""Timelines by category: every format shows the same figures, and what such a file does not hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.analysis.timelines import thinned, timeline_findings
from oomscope.commands.common.errors import DONE, FAILED, run
from oomscope.model.category_timeline import MOSAIC, PROFILER, CategoryTimeline
from oomscope.reading.category_timelines import PROFILER_CATEGORIES
from oomscope.rendering.category_timeline import to_json, to_markdown, to_text
from oomscope.rendering.html.category_page import category_page
from oomscope.units import format_bytes
from tests.rendering.hostile import NASTY, SCRIPT

FOREIGN = Path(__file__).resolve().parents[1] / "reading" / "foreign"
PROFILED, PAGE = str(FOREIGN / "profiler.json.gz"), str(FOREIGN / "mosaic.html")


def timeline(rows: list[list[int]], categories: tuple[str, ...] = PROFILER_CATEGORIES) -> CategoryTimeline:
    source = PROFILER if categories == PROFILER_CATEGORIES else MOSAIC
    bytes_ = np.array([row + [0] * (len(categories) - len(row)) for row in rows], np.int64)
    return CategoryTimeline(source, categories, bytes_, np.arange(len(rows)) * 1000, 0)


@pytest.mark.parametrize("form", ["text", "md", "json", "html"])
@pytest.mark.parametrize("path", [PROFILED, PAGE])
def test_every_format_shows_the_peak_and_what_is_missing(path: str, form: str, capsys: pytest.CaptureFixture[str]):
    assert run(["report", path, "-f", form, "-o", "-"]) == DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert ("5.08 MiB" if path == PROFILED else "2.65 GiB") in shown
    assert "whether a request failed" in shown
    assert "oomscope run PROGRAM" in shown


def test_figures_are_those_of_the_file(capsys: pytest.CaptureFixture[str]):
    assert run(["report", PROFILED, "-f", "json"]) == DONE
    document = json.loads(capsys.readouterr().out)
    assert document["peak"]["bytes"] == sum(one["at_peak"] for one in document["categories"]) == 5_322_784
    assert document["off_by"] == 0
    assert max(map(sum, zip(*document["curve"]["bytes"].values(), strict=True))) == document["peak"]["bytes"]
    assert document["next"] == ["oomscope run PROGRAM"]


@pytest.mark.parametrize("option", [["--at", "peak"], ["--device", "0"], ["--redact"], ["--bundle", "x.zip"]])
def test_options_that_need_a_snapshot_are_refused(option: list[str], tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["report", PROFILED, *option]) == FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert option[0] in err


@pytest.mark.parametrize("command", ["summary", "whatif", "diff"])
def test_other_commands_say_what_the_file_is(command: str, capsys: pytest.CaptureFixture[str]):
    assert run([command, PROFILED, *([PROFILED] if command == "diff" else [])]) == FAILED
    assert "only `oomscope report` shows it" in capsys.readouterr().err


def test_an_empty_timeline_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "t.json"
    path.write_text("[[], []]")
    assert run(["report", str(path), "-f", "text"]) == FAILED
    assert "empty" in capsys.readouterr().err


def test_memory_freed_from_before_is_said():
    text = to_text(timeline_findings(timeline([[10 << 20], [-(5 << 20)], [0]])))
    assert "-5.00 MiB" in text
    assert "at least 5.00 MiB too low" in text


def test_names_of_a_stranger_are_harmless():
    found = timeline_findings(timeline([[1 << 20, 2 << 20]], (SCRIPT, NASTY)))
    page = category_page(found)
    assert SCRIPT not in page
    assert page.count("</script>") == category_page(timeline_findings(timeline([[1]]))).count("</script>")
    for text in (to_text(found), to_markdown(found)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    json.loads(to_json(found))


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=300), st.integers(1, 50))
def test_thinning_keeps_the_peak(values: list[int], most: int):
    one = timeline([[value] for value in values])
    points = thinned(one, most)
    assert len(points) <= max(most, 1)
    assert one.total[points].max() == max(values)
    assert (np.diff(points) > 0).all()
    found = timeline_findings(one)
    assert found.peak == max(values)
    assert format_bytes(found.peak) in to_text(found)
