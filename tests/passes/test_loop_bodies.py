"""Which lines are one loop's body, by the text that a dump brought."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.loop_bodies import LoopBodies
from oomscope.analysis.passes.loop_finder import LEAST_ALIKE, LONGEST_EXPRESSION, NEARLY_EACH, pass_starts
from oomscope.analysis.study import study_device
from oomscope.model.recorded_stacks import RecordedSource
from tests.passes.scripts import Script

FILE = "/workspace/train/train.py"
TEXT = """\
def train(loader):
    for epoch in range(9):
        # one epoch
        for batch in loader:

            loss = model(
                batch)
            loss.backward()
            if step % 4 == 0:
                log(loss)
        evaluate()
    with torch.no_grad():
        while True:
            if ready:
                serve()
            wait()
""".splitlines()


def bodies(*unknown: int) -> LoopBodies:
    known = [number for number in range(1, len(TEXT) + 1) if number not in unknown]
    return LoopBodies(RecordedSource(FILE, number, number, (TEXT[number - 1],)) for number in known)


@pytest.mark.parametrize(
    ("lines", "unknown", "holds"),
    [
        ([6, 8, 9, 10], (), True),  # a block that only some passes run
        ([7, 8, 10], (), True),  # a call on several lines, of which the first allocates nothing
        ([6, 8, 11], (), False),  # two loops
        ([6, 8, 10], (10,), True),  # the first line of a block is in it
        ([6, 8, 10], (9, 10), False),
        ([6, 8], (5,), False),  # what lies between is not known
        ([6, 8], (6,), False),
        ([15, 16], (), True),  # a loop in a block
        ([12, 16], (), False),
        ([2, 11], (), False),  # no loop around it is in the function
    ],
)
def test_lines_of_the_innermost_loop_around_the_first(lines: list[int], unknown: tuple[int, ...], holds: bool) -> None:
    assert bodies(*unknown).hold(FILE, lines) is holds


def test_nothing_is_known_of_another_file() -> None:
    assert not bodies().hold("/workspace/train/other.py", [6, 8])
    assert not LoopBodies().hold(FILE, [6, 8])


@pytest.mark.parametrize(("every", "passes"), [(2, 12), (4, 12)])
def test_a_line_that_only_some_passes_run_ends_none(every: int, passes: int) -> None:
    keys = [(0, line) for one in range(12) for line in ((6, 8, 10) if one % every == every - 1 else (6, 8))]
    paths = [line for _, line in keys]
    assert len(pass_starts(keys, paths)) == 12 // every
    assert len(pass_starts(keys, paths, one_body=True)) == passes


def test_a_line_that_nearly_each_pass_runs_ends_them() -> None:
    assert NEARLY_EACH == 0.75
    keys = [(0, line) for one in range(4) for line in ((6, 8, 10) if one else (6, 8))]
    assert pass_starts(keys, [line for _, line in keys], one_body=True) == [0, 5, 8]
    keys = [(0, line) for one in range(4) for line in ((6, 8, 10) if one > 1 else (6, 8))]
    assert pass_starts(keys, [line for _, line in keys], one_body=True) == [0, 2, 4, 7]


@pytest.mark.parametrize("known", [False, True])
def test_passes_of_a_loop_that_logs_now_and_then(known: bool) -> None:
    script = Script()
    with script.call(20, "train"):
        for step in range(12):
            made = [script.at(6, 10), script.at(8, 5)]
            if step % 4 == 3:
                made.append(script.at(10, 2))
            script.free(*made)
        script.fails(6, 50)
    sources = [{"filename": FILE, "line": 6, "first": 1, "text": TEXT}] if known else []
    study = study_device(script.snapshot(oomscope={"schema_version": 1, "sources": sources}), 0)
    (run,) = (study.loops.runs[number] for number in study.loops.running(study.history.entries - 1)[:1])
    assert len(run.starts) == (13 if known else 4)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("loss = model(batch)", True),
        ("for batch in loader:", True),
        ("self.advance()  # (one pass", True),
        ("x = f('(')", True),
        ("with torch.no_grad():", True),
        ("loss = model(", False),
        ("f(batch),", False),
        ("batch)", False),
        (".sum()", False),
        ("for x in batch", False),  # of a comprehension
        ("total = a +", False),
        ("if ready", False),
        ("y = x and", False),
        ("x = y \\", False),
        ("", False),
    ],
)
def test_python_comes_back_to_a_whole_statement_in_loops_only(text: str, whole: bool) -> None:
    known = LoopBodies([RecordedSource(FILE, 7, 7, ("    " + text,))])
    assert known.is_statement(FILE, 7) is whole
    assert not known.is_statement(FILE, 8)
    assert not known.is_statement("/workspace/other.py", 7)


@pytest.mark.parametrize(
    ("text", "lines", "found"),
    [
        ("train_epoch(model)", 1, True),
        ("total = add(", 1, False),  # it may go back to its own line with its arguments
        (None, 1, False),
        (None, 2, False),
        (None, 3, True),  # it does at length what it had begun with
    ],
)
def test_the_second_pass_of_a_loop_over_two_lines(text: str | None, lines: int, found: bool) -> None:
    """An epoch and its evaluation; the second epoch fails as it begins."""
    assert LEAST_ALIKE == 3
    script = Script(FILE)
    with script.call(50, "fit"):
        with script.call(17, "train_epoch"):
            script.free(*(script.at(40 + line, 4) for line in range(5)))
        with script.call(18, "evaluate"):
            script.free(script.at(60, 4))
        with script.call(17, "train_epoch"):
            for line in range(lines - 1):
                script.at(40 + line, 4)
            script.fails(39 + lines, 500)
    sources = [] if text is None else [{"filename": FILE, "line": 17, "first": 17, "text": [text]}]
    study = study_device(script.snapshot(oomscope={"schema_version": 1, "sources": sources}), 0)
    assert bool(study.loops.running(study.history.entries - 1)) is found


@pytest.mark.parametrize(("apart", "found"), [(20, False), (21, True)])
def test_no_expression_spans_more_than_twenty_lines(apart: int, found: bool) -> None:
    assert LONGEST_EXPRESSION == 20
    script = Script(FILE)
    with script.call(50, "fit"):
        with script.call(17, "load"):
            script.free(script.at(60, 4))
        with script.call(17 + apart, "train"):
            script.free(script.at(70, 4))
        with script.call(17, "load"):
            script.fails(60, 500)
    study = study_device(script.snapshot(), 0)
    assert bool(study.loops.running(study.history.entries - 1)) is found
