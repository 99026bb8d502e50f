"""The states of an optimizer that another one, for the same parameters, has followed: by the trace alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from oomscope.analysis.passes.replaced_optimizer import (
    LEAST_STEPS,
    MOST_AGAIN,
    TWO_EACH,
    find_replaced_optimizer,
)
from oomscope.analysis.study import DeviceStudy, study_device
from tests.analysis.programs import MIB, STATE
from tests.passes.scripts import BACKWARD_CALL, MAKING, Script

TABLE, BIAS = 40, 20


def training(
    parameters: Sequence[float], made: Mapping[int, Sequence[float]], *, state: Sequence[dict[str, Any]] = STATE[:3]
) -> DeviceStudy:
    """Steps that make the states `made`, by their numbers: the first by Adam's line, later ones by that of `state`."""
    script = Script()
    for size in parameters:
        script.at(5, size, *MAKING)
    with script.call(6, "train"):
        for step in range(max(made) + 1):
            output = script.layer(20, 7, 3)
            gradient = script.at(21, 10, *BACKWARD_CALL)
            script.free(output)
            for size in made.get(step, ()):
                script.at(22, size, *(state if step else STATE[:3]))
            script.free(gradient)
        script.fails(22, 500, *STATE[:3])
    return study_device(script.snapshot(), 0)


def trained(
    steps: int = LEAST_STEPS,
    each: int = TWO_EACH,
    again: Sequence[float] = (TABLE, TABLE),
    *,
    parameters: Sequence[float] = (TABLE,),
    state: Sequence[dict[str, Any]] = STATE[:3],
) -> DeviceStudy:
    """A training with states for all parameters, which makes `again` after so many steps."""
    return training(parameters, {0: [one for one in parameters for _ in range(each)], steps: again}, state=state)


def left(study: DeviceStudy) -> float | None:
    found = find_replaced_optimizer(study, study.history.entries - 1)
    return None if found is None else found.bytes / MIB


def test_states_for_parameters_that_had_theirs_are_another_optimizers() -> None:
    study = trained()
    assert left(study) == 2 * TABLE
    found = find_replaced_optimizer(study, study.history.entries - 1)
    assert found is not None
    assert found.place is not None
    assert (found.place.line, found.place.function) == (22, "train")


@pytest.mark.parametrize(("steps", "bytes_"), [(LEAST_STEPS, 2 * TABLE), (LEAST_STEPS - 1, None)])
def test_optimizers_that_step_in_turn_begin_in_one_pass(steps: int, bytes_: float | None) -> None:
    assert left(trained(steps)) == bytes_


@pytest.mark.parametrize(("each", "bytes_"), [(TWO_EACH, 2 * TABLE), (TWO_EACH - 1, None)])
def test_one_state_for_each_may_be_two_for_half_of_them(each: int, bytes_: float | None) -> None:
    assert left(trained(each=each)) == bytes_


def test_layers_that_are_trained_from_now_on_had_no_states() -> None:
    """Two of four layers of one size have been trained; a third is from now on."""
    assert left(trained(parameters=(TABLE,), again=(BIAS, BIAS))) is None
    half, one_more = [TABLE] * 2 * TWO_EACH, [TABLE] * TWO_EACH
    assert left(training([TABLE] * 4, {0: half, LEAST_STEPS: one_more})) is None


def test_most_of_the_new_states_are_for_parameters_that_had_theirs() -> None:
    new = 100 - 100 * MOST_AGAIN
    assert left(trained(parameters=(100,), again=(100, new))) == 200
    assert left(trained(parameters=(100,), again=(100, 2 * new))) is None


def test_what_an_optimizer_makes_later_is_made_by_other_lines() -> None:
    """Slow weights, an average of the parameters."""
    slow = {**STATE[0], "line": STATE[0]["line"] + 40}
    assert left(trained(state=(slow, *STATE[1:3]))) is None


def test_a_history_that_every_step_adds_to_is_of_one_optimizer() -> None:
    """L-BFGS with one parameter: two vectors of its size a step."""
    every = {step: [TABLE] * TWO_EACH for step in range(LEAST_STEPS + 2)}
    assert left(training((TABLE,), every, state=STATE[:3])) is None
    first_and_last = {0: [TABLE] * TWO_EACH, LEAST_STEPS + 1: [TABLE] * TWO_EACH}
    assert left(training((TABLE,), first_and_last)) == 2 * TABLE


def test_without_states_there_is_none() -> None:
    assert left(trained(each=0, again=())) is None
