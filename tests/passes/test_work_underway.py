"""Where what is left over and what is underway part, in traces of made-up scripts."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.passes.work_underway import (
    MOSTLY,
    WorkUnderway,
    functions_in_modules,
    goes_on_making,
    work_since,
)
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, IntArray
from tests.analysis.asking import diagnose
from tests.builders import frame
from tests.passes.scripts import CALLED, Script


def asked(script: Script) -> tuple[DeviceStudy, int, IntArray]:
    """The study, the request that failed, and the lifetimes that are live then."""
    diagnosis = diagnose(script.snapshot())
    return diagnosis.study, diagnosis.at, np.flatnonzero(diagnosis.study.history.lifetimes.allocated_at(diagnosis.at))


def stages(first: tuple[int, str], then: tuple[int, str]) -> Script:
    """`main` calls two functions, each from its line; the second one fails."""
    script = Script()
    with script.call(9, "main"):
        with script.call(*first), script.call(64, "run"):
            script.at(31, 8)
        with script.call(*then), script.call(64, "run"):
            script.fails(31, 8)
    return script


def test_two_calls_part_at_the_line_that_is_underway():
    study, entry, rows = asked(stages((103, "base_stage"), (105, "sft_stage")))
    work = work_since(study, entry, rows)
    assert work is not None
    assert (work.at.function, work.at.line, work.kind) == ("main", 105, "call")
    assert not goes_on_making(study, entry, work, rows)


@pytest.mark.parametrize("then", [(103, "base_stage"), (103, "sft_stage")])
def test_calls_from_one_line_do_not_part(then: tuple[int, str]):
    assert work_since(*asked(stages((103, "base_stage"), then))) is None


@pytest.mark.parametrize(("elsewhere", "parts"), [(8, True), (9, False)])
def test_most_of_what_is_left_must_part_there(elsewhere: float, parts: bool):
    """What the line that failed has made itself does not part from it."""
    assert MOSTLY == 0.5
    script = Script()
    with script.call(9, "main"):
        script.at(12, 8)
        script.at(14, elsewhere)
        script.fails(14, 8)
    study, entry, rows = asked(script)
    assert (work_since(study, entry, rows) is not None) is parts
    assert work_since(study, entry, rows, least=0) is not None


def looping(*, before: float, within: float) -> Script:
    """What `main` makes before its loop, and in each pass; the third pass fails."""
    script = Script()
    with script.call(9, "main"):
        if before:
            script.at(20, before)
        for number in range(3):
            script.free(script.at(30, 1))
            if within and number < 2:
                script.at(31, within)
            if number == 2:
                script.fails(33, 8)
            else:
                script.free(script.at(33, 1))
    return script


def test_what_is_older_than_the_loop_can_go_before_it():
    study, entry, rows = asked(looping(before=16, within=0))
    work = work_since(study, entry, rows)
    assert work is not None
    assert (work.at.line, work.kind) == (30, "loop")
    assert not goes_on_making(study, entry, work, rows)


def test_what_passes_make_goes_on():
    study, entry, rows = asked(looping(before=0, within=16))
    work = work_since(study, entry, rows)
    assert isinstance(work, WorkUnderway)
    assert (work.at.line, work.kind) == (33, "call")
    assert goes_on_making(study, entry, work, rows)


def test_what_a_forward_calls_runs_within_its_module() -> None:
    script = Script()
    helper = frame("forward_features", 20, "/workspace/train/model.py")
    with script.call(9, "main"):
        script.fails(31, 8, helper, frame("forward", 12, "/workspace/train/model.py"), *CALLED)
        script.fails(32, 8)
    study = diagnose(script.snapshot()).study
    first, last = np.flatnonzero(study.history.trace.action == Action.OOM).tolist()
    assert functions_in_modules(study, first) == {"forward_features", "forward"}
    assert functions_in_modules(study, last) == set()
