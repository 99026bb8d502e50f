"""What is older than the work that is underway, and may be done with."""

from __future__ import annotations

from oomscope.analysis.passes.left_from_before import (
    call_begin,
    left_from_before,
    made_by_other_statements,
    statement_begin,
)
from tests.analysis.asking import diagnose
from tests.analysis.programs import MIB
from tests.passes.scripts import BACKWARD_CALL, Script
from tests.passes.test_failing_pass import step


def left(script: Script) -> int:
    diagnosis = diagnose(script.snapshot())
    return left_from_before(diagnosis.study, diagnosis.at)


def test_what_was_made_before_the_loop_may_be_done_with():
    script = Script()
    with script.call(5, "load"):
        script.at(6, 40)
    with script.call(50, "train"):
        step(script, 2)
        step(script, 2)
        step(script, 2, fails=True)
    assert left(script) == 40 * MIB


def test_what_the_passes_of_the_loop_made_is_not_older():
    script = Script()
    with script.call(50, "train"):
        for _ in range(3):
            script.at(20, 10)
            step(script, 2)
        step(script, 2, fails=True)
    assert left(script) == 0


def test_without_a_loop_what_a_function_made_that_has_returned_may_be_done_with():
    script = Script()
    with script.call(5, "render"):
        script.at(6, 40)
    with script.call(50, "train"):
        script.at(31, 8)
        script.layer(32, 10, 16)
        script.fails(33, 100)
    assert left(script) == 40 * MIB


def test_a_failure_in_a_thread_of_autograd_is_told_by_what_the_program_did_last():
    script = Script()
    with script.call(5, "render"):
        script.at(6, 40)
    with script.call(50, "train"):
        script.at(31, 8)
    script.oom(100 * MIB, ())
    assert left(script) == 40 * MIB


def others(script: Script, *, in_forward: bool = True) -> int:
    diagnosis = diagnose(script.snapshot())
    return made_by_other_statements(diagnosis.study, diagnosis.at, in_forward=in_forward)


def test_a_forward_that_a_line_above_the_one_underway_made():
    script = Script()
    script.at(4, 40)
    script.layer(5, 10, 16)
    script.layer(9, 10, 16)
    script.layer(9, 11, 8)
    script.fails(9, 100)
    assert others(script) == 56 * MIB


def test_a_backward_needs_what_its_own_function_made_before_it():
    script = Script()
    script.at(4, 40)
    with script.call(9, "train"):
        script.layer(31, 10, 16)
        script.fails(33, 100, *BACKWARD_CALL)
    assert others(script, in_forward=False) == 40 * MIB
    assert others(script) == 56 * MIB


def test_within_a_loop_the_loop_tells_what_is_older():
    script = Script()
    script.at(4, 40)
    with script.call(50, "train"):
        step(script, 2)
        step(script, 2)
        step(script, 2, fails=True)
    assert others(script) == 0


def test_a_statement_begins_where_another_one_of_the_same_call_has_ended():
    script = Script()
    script.at(3)
    with script.call(50, "train"):
        with script.call(20, "show"):
            script.at(31, 8)
        first = len(script.entries)
        script.layer(21, 10, 16)
        script.fails(21, 100)
    diagnosis = diagnose(script.snapshot())
    assert call_begin(diagnosis.study, diagnosis.at) == 1
    assert statement_begin(diagnosis.study, diagnosis.at) == first
