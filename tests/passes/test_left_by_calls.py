"""What calls that ran a model have left when they returned, by the trace alone."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.left_by_calls import (
    LEAST_SHARE,
    NEARLY_ALL,
    LeftByCalls,
    find_left_by_calls,
    find_left_by_last_pass,
    find_left_by_statements,
)
from oomscope.analysis.study import study_device
from tests.analysis.programs import MIB
from tests.passes.scripts import Script


def found(kept: float, *, runs_model: bool = True, loops: bool = False) -> LeftByCalls | None:
    script = Script()
    with script.call(5, "evaluate"):
        if runs_model:
            script.free(script.layer(6, 10, 3))
        script.at(7, kept)
    for _ in range(3 if loops else 1):
        output = script.layer(20, 11, 100 - kept)
        if loops:
            script.at(21, 1)
            script.free(output)
    script.fails(20, 80)
    study = study_device(script.snapshot(), 0)
    return find_left_by_calls(study, study.history.entries - 1)


@pytest.mark.parametrize(("kept", "is_told"), [(100 * LEAST_SHARE, True), (100 * LEAST_SHARE - 1, False)])
def test_it_must_be_much(kept: float, is_told: bool) -> None:
    left = found(kept)
    assert (left is not None) is is_told
    if left is not None:
        assert left.bytes == kept * MIB
        assert left.place is not None
        assert left.place.line == 7


def test_data_that_a_function_has_loaded() -> None:
    assert found(50, runs_model=False) is None


def test_work_that_has_gone_round_with_it_may_need_it() -> None:
    assert found(50, loops=True) is None


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize(("least", "is_told"), [(60, True), (61, False)])
def test_what_is_older_than_the_forward_and_its_loop(least: int, is_told: bool, loops: bool) -> None:
    script = Script()
    script.at(3, 40)
    script.at(4, 20)
    for _ in range(3 if loops else 1):
        output = script.layer(20, 11, 10)
        if loops:
            script.at(21, 1)
            script.free(output)
    script.fails(20, 80)
    study = study_device(script.snapshot(), 0)
    left = find_left_by_statements(study, study.history.entries - 1, least * MIB)
    assert (left is not None) is is_told
    if left is not None:
        assert (left.bytes, left.by) == (60 * MIB, "statements")
        assert left.place is not None
        assert left.place.line == 3


@pytest.mark.parametrize(("least", "is_told"), [(30, True), (31, False)])
@pytest.mark.parametrize("every", [0, 0.5, 8])
def test_what_the_last_pass_has_left_and_none_before_it(least: int, is_told: bool, every: float) -> None:
    """`every` stays of each pass."""
    assert NEARLY_ALL == 0.95
    script = Script()
    output = None
    for _ in range(3):
        new = script.layer(20, 11, 30)
        if output is not None:
            script.free(output)
        output = new
        stays = script.at(21, every or 1)
        if not every:
            script.free(stays)
    script.fails(20, 80)
    study = study_device(script.snapshot(), 0)
    left = find_left_by_last_pass(study, study.history.entries - 1, least * MIB)
    assert (left is not None) is (is_told and every < 8)
    if left is not None:
        assert (left.bytes, left.by) == ((30 + every) * MIB, "pass")
        assert left.place is not None
        assert left.place.line == 11
