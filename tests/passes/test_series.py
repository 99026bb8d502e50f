"""The steps of a whole run, of which the trace has the end: exact where something tells, unknown where nothing does."""

from __future__ import annotations

import lzma
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oomscope import analyze, load
from oomscope.analysis.findings import Findings
from oomscope.analysis.passes.series import UNKNOWN, series_of
from oomscope.rendering.html.page import render_html
from oomscope.wording.series import run_length, series_text

CAPTURE = Path(__file__).resolve().parents[1] / "recording" / "fixtures" / "leak_hook.pickle.xz"
HOUR = 3_600_000_000
EARLIER = 400


def long_run(folder: Path, *, earlier: int = EARLIER) -> Findings:
    """A real recording, with rows from the days before what its trace holds."""
    with lzma.open(CAPTURE) as file:
        payload = pickle.load(file)
    key: dict[str, Any] = payload["oomscope"]
    first = key["steps"][0]["begin_us"]
    key["steps_before"] = [
        {
            "name": str(64 * number),
            "begin_us": first - (earlier - number) * HOUR,
            "end_us": first - (earlier - number - 1) * HOUR,
            "count": 64,
            "allocated": [number << 20],
            "reserved": [(number + 1) << 21],
            "peak_allocated": [None],
            "peak_reserved": [None],
            "retries": 1 if number == 5 else 0,
        }
        for number in range(earlier)
    ]
    path = folder / "run.pickle"
    path.write_bytes(pickle.dumps(payload))
    return analyze(load(path), whatif=False)


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return long_run(tmp_path_factory.mktemp("run"))


def test_every_step_is_there_in_order(findings: Findings):
    series = series_of(findings.snapshot, findings.main.history)
    ended = [step for step in findings.snapshot.recorded.steps if step.end_us is not None]
    assert len(series) == EARLIER + len(ended)
    assert series.count.sum() == 64 * EARLIER + len(ended)
    assert np.all(np.diff(series.end_us) >= 0)
    assert series.allocated[3] == 3 << 20
    assert series.allocated[-1] == ended[-1].allocated[0]


def test_a_peak_is_known_only_where_the_step_raised_it_or_the_trace_has_it(findings: Findings):
    series, history = series_of(findings.snapshot, findings.main.history), findings.main.history
    assert np.all(series.peak[:EARLIER] == UNKNOWN)
    clock = history.trace.time_us
    inside = (series.begin_us >= clock.min()) & (series.end_us <= clock.max())
    assert inside.any()
    assert np.all(series.peak[inside] != UNKNOWN)
    for row in np.flatnonzero(inside):  # a second way: entry by entry
        held = [
            int(history.curves.allocated[entry + 1])
            for entry in range(history.entries)
            if series.begin_us[row] <= clock[entry] <= series.end_us[row]
        ]
        told = findings.snapshot.recorded.steps[row - EARLIER].peak_allocated[0]
        assert series.peak[row] == told if told is not None else series.peak[row] >= max(held, default=0)


def test_the_page_draws_the_run_and_says_what_its_rows_are(findings: Findings):
    page = render_html(findings)
    assert 'id="fig-run"' in page
    text = series_text(series_of(findings.snapshot, findings.main.history))
    assert text in page
    assert "in 16.7 days" in text
    assert "stand for up to 64 steps each" in text
    assert "tried again 1 time" in text


def test_a_run_is_drawn_where_it_goes_back_further_than_the_trace():
    """Both are real: the ring of one holds its last seconds only."""
    wrapped, whole = (load(CAPTURE.with_name(f"{name}.pickle.xz")) for name in ("leak_hook", "two_devices"))
    assert 'id="fig-run"' in render_html(analyze(wrapped, whatif=False))
    assert 'id="fig-run"' not in render_html(analyze(whole, whatif=False))


@pytest.mark.parametrize(
    ("microseconds", "words"),
    [(8_000_000, "8.0 s"), (42 * 60_000_000, "42.0 min"), (5 * HOUR, "5.0 h"), (72 * HOUR, "3.0 days")],
)
def test_run_lengths(microseconds: int, words: str):
    assert run_length(microseconds) == words


def test_absurd_rows_do_no_harm(tmp_path: Path):
    with lzma.open(CAPTURE) as file:
        payload = pickle.load(file)
    payload["oomscope"]["steps_before"] = [
        {"begin_us": (1 << 63) - 1, "end_us": 0, "allocated": [(1 << 63) - 1], "count": (1 << 63) - 1},
        {"begin_us": 0, "end_us": (1 << 63) - 1, "allocated": "x", "reserved": [-1]},
        {"begin_us": 0, "end_us": 1, "allocated": [5], "shape": []},
        {"begin_us": 2, "end_us": 3, "allocated": [5]},
    ]
    path = tmp_path / "absurd.pickle"
    path.write_bytes(pickle.dumps(payload))
    assert "</html>" in render_html(analyze(load(path), whatif=False))
