"""Figures over time: what is drawn is what the legend names, and steps have their own names."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from oomscope.analysis.findings import Findings
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html import charts, palette
from oomscope.rendering.html.chart_data import TimeAxis
from oomscope.rendering.html.figures import steps_figure
from oomscope.rendering.html.first_screen import first_screen
from oomscope.rendering.html.svg import LONGEST_NAME, StyleSheet, plain_name
from oomscope.rendering.html.timelines import TimeFigure, draw_timelines, told_of
from tests.samples import sample_findings

LEAK = "oom_leak_total_loss"


def whole(findings: Findings) -> tuple[TimeFigure, str]:
    """The figure of the whole recording, and all styles of the page."""
    device, sheet = findings.main, StyleSheet()
    assert device is not None
    figure = draw_timelines(findings, device, told_of(device, str), sheet).whole
    assert figure is not None
    return figure, sheet.css()


def with_limit(low: int, requested: int) -> Findings:
    findings = sample_findings(LEAK)
    device = findings.devices[0]
    assert device.oom is not None
    oom = replace(device.oom, alloc_size=requested, limit=replace(device.oom.limit, low=low))
    return replace(findings, devices=(replace(device, oom=oom, ooms=(*device.ooms[:-1], oom)),))


def highest() -> int:
    return int(sample_findings(LEAK).devices[0].history.curves.reserved.max())


@pytest.mark.parametrize(
    ("share", "asked", "is_shown"),
    [(1.0, 0.0, True), (1.59, 0.0, True), (1.61, 0.0, False), (1.7, 0.5, True), (2.5, 0.5, False)],
)
def test_the_limit_is_named_where_it_is_drawn_and_only_there(share: float, asked: float, is_shown: bool):
    figure, css = whole(with_limit(int(share * highest()), int(asked * highest())))
    assert figure.limit == is_shown
    assert (f"stroke:var(--{palette.LIMIT.variable})" in css) == is_shown


@pytest.mark.parametrize("name", [LEAK, "oom_fragmentation", "train_ok"])
def test_the_large_timeline_shows_what_the_small_one_shows(name: str):
    """The same parts in the same colours, along the same entries."""
    findings = sample_findings(name)
    device = findings.main
    assert device is not None
    figure, _ = whole(findings)
    screen = first_screen(findings, str, Sources(), StyleSheet())
    bar = [(part.colour, part.opacity, part.label) for part in screen.parts if part.colour.startswith("k-")]
    assert [tuple(key) for key in figure.keys[: len(bar)]] == bar
    assert "trace entry" in figure.svg
    assert screen.strip is not None
    freed = [key.label for key in figure.keys[len(bar) :]]
    assert freed == ([screen.strip.freed] if screen.strip.freed else [])


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_steps_have_their_own_names_in_every_figure():
    findings = sample_findings(LEAK)
    device = findings.devices[0]
    named = tuple(replace(step, name=f"s{number + 7}") for number, step in enumerate(device.steps.steps))
    device = replace(device, steps=replace(device.steps, steps=named), passes=None)
    svg = steps_figure(device, StyleSheet())
    assert svg is not None
    shown = [text for text in texts(svg) if text.startswith("s") and text != "step"]
    assert shown
    assert set(shown) <= {step.name for step in named}
    assert "s7" in shown


def test_bands_of_the_timeline_are_named_after_their_steps():
    x, held = np.arange(100, dtype=np.float64), np.full(100, 1 << 30)
    view = charts.MemoryOverTime(
        x, axis=TimeAxis("the peak", None), layers=[], active=held, reserved=held, limit=None, bands=[0.0, 50.0],
        names=["a1", "b2"], marks=[],
    )  # fmt: skip
    shown = [text.get_text() for text in charts.timeline(view).axes[0].texts]
    assert shown == ["a1", "b2"]


def test_all_failures_are_counted_above_the_timeline_though_only_the_last_are_judged():
    x, held = np.arange(1000, dtype=np.float64), np.full(1000, 1 << 30)
    view = charts.MemoryOverTime(
        x, axis=TimeAxis("the OOM", None), layers=[], active=held, reserved=held, limit=None, bands=[], names=[],
        marks=[charts.Moment(900.0, "oom", 1 << 20, 1 << 30)], failed=[100, 101, 102, 500, *range(880, 901)],
    )  # fmt: skip
    axes = charts.timeline(view).axes[0]
    assert [text.get_text() for text in axes.texts] == ["3 OOMs", "OOM", "21 OOMs"]
    drawn = [np.asarray(one.get_xdata()) for one in axes.lines if one.get_color() == palette.ALARM.light]
    assert sorted(int(x[0]) for x in drawn[:-1]) == [100, 102, 500, *range(880, 901, 2)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("12", "12"), ("x" * LONGEST_NAME, "x" * LONGEST_NAME), ("x" * (LONGEST_NAME + 1), ""), ("\u202e", ""), ("é", "")],
)
def test_only_short_plain_names_enter_a_figure(name: str, shown: str):
    assert plain_name(name) == shown
