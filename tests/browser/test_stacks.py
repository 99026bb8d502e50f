"""The flame graph at what is chosen in the timeline: the bytes of every box are those of the history then."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from oomscope.analysis import Findings
from oomscope.model import IntArray, frame_kind
from oomscope.model.frames import FrameKind
from oomscope.rendering.html.flame import full_name, is_framework
from oomscope.units import format_bytes
from oomscope.wording.paths import shortener
from tests.browser.conftest import Browser, findings_of

pytestmark = pytest.mark.browser

Report = Callable[[str], Path]
Path_ = tuple[str, ...]
NAMES = ["oom_leak_total_loss", "leak_total_loss", "oom_cuda_graphs", "oom_fragmentation", "train_ok"]
"""Samples whose graph has boxes of other instants, without frames of PyTorch and with them."""
BOXES = """
const id = arguments[0], {flames} = JSON.parse(document.getElementById("data").textContent);
const {parents} = flames.graphs[arguments[1]];
const boxes = [...document.getElementById(id).querySelectorAll(".box")];
return boxes.map((box, at) => ({title: box.querySelector("title").textContent, parent: parents[at],
  x: Number(box.dataset.x), w: Number(box.dataset.w), bytes: Number(box.dataset.v)}));
"""


def graphs(browser: Browser) -> Iterator[tuple[str, int, bool]]:
    """Identifier, number, and whether it has frames of PyTorch, of each graph of the page that is open."""
    if not browser.all("#flame-all"):
        yield "flame", 0, True
        return
    yield "flame", 0, False
    yield "flame-all", 1, True


def live_paths(findings: Findings, live: IntArray, *, framework: bool) -> Counter[Path_]:
    """Bytes beneath every path of frames, those of each lifetime given by `live`; told as the page tells frames."""
    device, stacks = findings.main, findings.snapshot.stacks
    assert device is not None
    shorten = shortener(stacks)
    found: Counter[Path_] = Counter()
    for row in np.flatnonzero(live).tolist():
        frames = [
            full_name(frame, shorten)
            for frame in stacks[int(device.history.lifetimes.stack[row])][::-1]
            if frame_kind(frame.filename) is not FrameKind.CPP and (framework or not is_framework(frame.filename))
        ]
        for length in range(len(frames) + 1 if frames else 0):
            found[tuple(frames[:length])] += int(live[row])
    return found


def drawn(browser: Browser, name: str, number: int) -> list[tuple[Path_, dict]]:
    """Every box of a graph with the frames that lead to it."""
    boxes, paths = browser.run(BOXES, name, number), []
    for box in boxes:
        caller = paths[box["parent"]] if box["parent"] >= 0 else ()
        shown = box["title"] if box["bytes"] == 0 and " (" not in box["title"] else box["title"].rpartition(" · ")[0]
        paths.append((*caller, shown))
    return list(zip(paths, boxes, strict=True))


def choose(browser: Browser, *shares: float) -> list[int]:
    """Click on an instant, or drag over a range; the entries that the section Who names."""
    script = (
        "const s = document.querySelector('#tl-whole'), b = s.getBoundingClientRect();"
        "const at = {bubbles: true, clientX: b.left + b.width * arguments[0], clientY: b.top + 50};"
        "s.dispatchEvent(new PointerEvent(arguments[1], at))"
    )
    if len(shares) == 1:
        browser.run(script, shares[0], "click")
    else:
        for share, kind in ((shares[0], "pointerdown"), (shares[1], "pointermove"), (shares[1], "pointerup")):
            browser.run(script, share, kind)
    said = re.findall(r"entry ([\d,]+)", browser.find("#who-when").text)
    return [int(entry.replace(",", "")) for entry in said[: len(shares)]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.12, 0.4, 0.77, 0.93])
def test_every_box_has_its_bytes_at_the_instant(browser: Browser, report: Report, name: str, share: float):
    findings = findings_of(name)
    history = findings.main.history
    browser.open(report(name))
    (entry,) = choose(browser, share)
    live = np.where(history.lifetimes.allocated_at(entry), history.size, 0)
    for graph, number, framework in graphs(browser):
        wanted = live_paths(findings, live, framework=framework)
        boxes = drawn(browser, graph, number)
        assert {path: box["bytes"] for path, box in boxes} == {path: wanted[path] for path, _ in boxes}
        said = browser.run("return document.querySelectorAll('.graph .covers')[arguments[0]].textContent", number)
        assert f"entry {entry:,}: {format_bytes(wanted[()])}." in said
        missing = int(live.sum()) - wanted[()]
        assert f": {format_bytes(missing)}. " in f"{said} " or not missing
        assert ("Without a stack" in said) == (missing > 0)


@pytest.mark.parametrize("name", ["oom_leak_total_loss", "leak_total_loss"])
def test_every_box_lies_beneath_its_caller_and_beside_its_like(browser: Browser, report: Report, name: str):
    browser.open(report(name))
    choose(browser, 0.5)
    for graph, number, _ in graphs(browser):
        boxes = [box for _, box in drawn(browser, graph, number)]
        total = sum(box["bytes"] for box in boxes if box["parent"] < 0)
        assert total
        for box in boxes:
            assert box["w"] == pytest.approx(100 * box["bytes"] / total, abs=1.0)
            if box["parent"] >= 0 and box["w"]:
                above = boxes[box["parent"]]
                assert above["x"] - 1e-6 <= box["x"]
                assert box["x"] + box["w"] <= above["x"] + above["w"] + 1e-6
        for one in boxes:
            for other in boxes:
                if one is not other and one["parent"] == other["parent"] and one["w"] and other["w"]:
                    assert one["x"] + one["w"] <= other["x"] + 1e-6 or other["x"] + other["w"] <= one["x"] + 1e-6


@pytest.mark.parametrize("name", ["oom_leak_total_loss", "leak_total_loss"])
def test_of_a_range_rises_have_width_and_falls_have_words(browser: Browser, report: Report, name: str):
    """What rose less what fell is what changed, of every box."""
    findings = findings_of(name)
    history = findings.main.history
    browser.open(report(name))
    first, end = choose(browser, 0.3, 0.61)
    before, after = (
        live_paths(findings, np.where(history.lifetimes.allocated_at(at), history.size, 0), framework=True)
        for at in (first, end)
    )
    graph, number, _ = list(graphs(browser))[-1]
    boxes = drawn(browser, graph, number)
    for path, box in boxes:
        change = after[path] - before[path]
        fell = re.search(r"fell by (.*)$", box["title"])
        assert box["bytes"] >= change
        assert fell is not None if box["bytes"] > change else fell is None
        if fell:
            assert fell[1] == format_bytes(box["bytes"] - change)
    assert any(box["bytes"] for _, box in boxes)
    said = browser.run("return document.querySelectorAll('.graph .covers')[arguments[0]].textContent", number)
    assert said.startswith("Width is what rose from ")


@pytest.mark.parametrize("name", ["oom_leak_total_loss", "leak_total_loss"])
def test_the_graph_comes_back(browser: Browser, report: Report, name: str):
    browser.open(report(name))
    whole = (
        "return [...document.querySelectorAll('#flame-figure .box:not(.out), #flame-figure .covers')]"
        ".map(one => one.outerHTML)"
    )
    before = browser.run(whole)
    choose(browser, 0.4)
    assert browser.run(whole) != before
    browser.run("document.querySelector('#who-when button').click()")
    assert browser.run(whole) == before


def test_at_its_own_instant_the_graph_is_as_it_was_drawn(browser: Browser, report: Report):
    name = "oom_cuda_graphs"
    browser.open(report(name))
    drawn_first = (
        "return [...document.querySelectorAll('#flame .box:not(.out)')].map(one => [one.getAttribute('x'),"
        "one.getAttribute('width'), one.querySelector('title').textContent, one.querySelector('rect').outerHTML])"
    )
    before = browser.run(drawn_first)
    said = browser.find(".covers").text
    choose(browser, 0.9999)
    assert browser.run(drawn_first)[: len(before)] == before
    assert said
    assert browser.find(".covers").text.endswith(said)


def test_zoom_and_search_go_on_at_another_instant(browser: Browser, report: Report):
    browser.open(report("oom_leak_total_loss"))
    choose(browser, 0.4)
    click = "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    box = browser.find("#flame .box:not(.out):nth-of-type(6)")
    browser.run(click, box)
    assert box.get_attribute("width") == "100%"
    browser.run(click, box)
    browser.find("#flame-figure input[type=search]").send_keys("loss_fn")
    assert len(browser.all("#flame .box.found:not(.out)")) >= 1
