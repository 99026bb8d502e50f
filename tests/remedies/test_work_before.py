"""Advice on what the program has finished with says before which line it has to go, and shows that line."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.passes.work_underway import MOST_INDENT, MOST_STACKS, MOSTLY, WorkUnderway
from oomscope.analysis.records import Location
from oomscope.analysis.remedies.collect_garbage import LEAST_PASSES
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html.culprit import culprit
from oomscope.rendering.html.first_screen import fixes
from oomscope.wording.page import before_note
from oomscope.wording.template import work
from oomscope.wording.verdict_text import advice_text
from tests.verdict.known import programs

PROGRAMS = Path(__file__).resolve().parents[1] / "captures" / "programs"


@cache
def recorded(name: str) -> Snapshot:
    return load(PROGRAMS / f"{name}.pickle.xz")


def analyzed(snapshot: Snapshot) -> DeviceFindings:
    device = analyze(snapshot, whatif=False).main
    assert device is not None
    assert device.oom is not None
    return device


def first_action(snapshot: Snapshot) -> str:
    device = analyzed(snapshot)
    assert device.oom is not None
    return advice_text(device.oom.verdict.advice[0]).action


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("two_stages", "before line 39 of main: `del` it"),
        ("baseline_tune", "before the block around line 26 of main: `del` it"),
        ("search_train", "before the block around line 44 of main: put what is still read (searcher.best_loss)"),
        ("distill", "or call `gc.collect()` before line 79 of main."),
        ("folds", "or call `gc.collect()` after each pass."),
        ("pretrain_then_tune", "once its training is over, before line 85 of main: `del`"),
        ("phases", "once it has ended, before line 42 of phases.py: `del`"),
        ("resume_train", "has copied it, before the loop in resume_train.py:16."),
    ],
)
def test_the_advice_says_before_which_line(name: str, said: str) -> None:
    assert said in first_action(recorded(name))


@pytest.mark.parametrize(
    ("name", "line", "text", "note"),
    [
        (
            "two_stages",
            39,
            "stage2.fit(codes, 1024, 4)",
            "let go of stage1 (made at two_stages.py:35) before this line",
        ),
        ("distill", 79, "student.fit(zip(transfer, soft))", "call gc.collect() before this line"),
        (
            "baseline_tune",
            26,
            "loss = F.mse_loss(model(x), x)",
            "let go of baseline (made at baseline_tune.py:21) before this block",
        ),
    ],
)
def test_that_line_is_the_one_shown_and_the_one_of_the_fix(name: str, line: int, text: str, note: str) -> None:
    snapshot = recorded(name)
    device, sources = analyzed(snapshot), Sources(snapshot)
    found = culprit(device, str, sources)
    assert found is not None
    assert (found.line, found.excerpt and found.excerpt.text, found.note) == (line, text, note)
    at = fixes(device, sources)[0].at
    is_known = not note.endswith("block")  # of a block only a line within it is
    assert at == Location(at.file, line, "main") if at is not None else not is_known
    assert found.to_change is is_known


def with_line(name: str, line: int, text: str | None) -> Snapshot:
    """The recording with another text of one line; None: without any lines."""
    snapshot = recorded(name)
    context: dict[str, Any] = dict(snapshot.context or {})
    told = context["sources"]
    context["sources"] = [
        one
        if not one["first"] <= line < one["first"] + len(one["text"])
        else {
            **one,
            "text": [text if one["first"] + at == line else other for at, other in enumerate(one["text"])],
        }
        for one in (told if text is not None else [])
    ]
    return replace(snapshot, context=context)


@pytest.mark.parametrize(
    ("text", "is_given"),
    [
        ("    stage2.fit(codes, stage1)", True),
        ("    stage2.fit(codes, my.stage1, stage10)  # stage1", False),
        (None, False),
    ],
)
def test_what_the_call_in_progress_was_given_cannot_go_before_it(text: str | None, is_given: bool) -> None:
    said = first_action(with_line("two_stages", 39, text))
    assert ("before the work that follows" in said) is is_given
    assert ("before line 39 of main" in said) is not is_given


def test_a_line_that_stands_further_in_than_its_function_is_part_of_a_block() -> None:
    assert "before the block around line 39 of main" in first_action(with_line("two_stages", 39, "        fit(codes)"))
    assert MOST_INDENT == 8


def with_unread(name: str, **told: object) -> Snapshot:
    """The recording with other values of the variables that are not read again."""
    snapshot = recorded(name)
    context: dict[str, Any] = dict(snapshot.context or {})
    context["unread"] = [{**one, **told} for one in context["unread"]]
    return replace(snapshot, context=context)


def test_the_loop_that_the_recording_tells_is_the_one_to_let_go_before() -> None:
    snapshot = with_unread("baseline_tune", loop=25)
    assert "before the loop in main (baseline_tune.py:25): `del` it" in first_action(snapshot)
    found = culprit(analyzed(snapshot), str, Sources(snapshot))
    assert found is not None
    assert (found.line, found.note) == (25, "let go of baseline (made at baseline_tune.py:21) before this loop")


def test_what_a_pass_has_written_can_go_within_it() -> None:
    assert "before line 26 of main" in first_action(with_unread("baseline_tune", since="pass"))


def test_what_a_list_of_callbacks_keeps_is_taken_out_of_the_list() -> None:
    assert first_action(load(programs()["graph_stages"].path)).startswith(
        "Take its method out of `EVENTS.handlers['report']` before line 173 of main: a bound method keeps its object."
    )


def test_work_is_told_by_its_kind() -> None:
    at = Location("/p/train.py", 9, "<module>")
    assert work(None) == ""
    assert work(WorkUnderway(at)) == "line 9 of train.py"
    assert work(WorkUnderway(at, "block")) == "the block around line 9 of train.py"
    assert work(WorkUnderway(at, "loop")) == "the loop in train.py:9"
    assert before_note("release_variable", "x", "call") == "let go of x before this line"
    assert before_note("release_ended_training", None, "loop") == "let go of it before this loop"
    assert (LEAST_PASSES, MOSTLY, MOST_STACKS) == (2, 0.5, 50)
