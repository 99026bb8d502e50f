"""The terminal text: the verdict first, within 80 columns, without escapes when piped."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from oomscope.rendering.text.sparkline import marks, sparkline
from oomscope.rendering.text.terminal import render_text, summary
from oomscope.wording.opening import verdict_text
from tests.rendering.hostile import hostile_findings
from tests.samples import SAMPLES, sample_findings


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", SAMPLES)
def test_lines_fit_the_width(name: str, width: int):
    lines = render_text(sample_findings(name), width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_verdict_is_what_every_format_says(name: str):
    findings = sample_findings(name)
    assert verdict_text(findings) in " ".join(render_text(findings).split())


def test_colour_changes_nothing_but_colour():
    findings = sample_findings("oom_fragmentation")
    sink = io.StringIO()
    console = Console(file=sink, force_terminal=True, color_system="truecolor", width=80, legacy_windows=False)
    console.print(summary(findings, width=80))
    assert "\x1b[" in sink.getvalue()
    assert "\x1b" not in render_text(findings)


def test_hostile_names_move_no_cursor():
    text = render_text(hostile_findings())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert len(text) < 60_000


@settings(deadline=None)
@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=500), st.integers(1, 100))
def test_the_sparkline_loses_no_peak(values: list[int], width: int):
    top = max(*values, 1)
    line = sparkline(np.asarray(values, dtype=np.int64), top, width)
    assert len(line) == min(width, len(values))
    assert ("█" in line) == (max(values) * 8 > top * 7)


def test_marks_stand_under_their_entries():
    assert marks(np.array([0, 99]), 100, 10, "^") == "^        ^"
