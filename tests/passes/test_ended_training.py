"""What a training that has ended left while another one is underway, by the trace alone."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import ended_training
from oomscope.analysis.passes.ended_training import LEAST_STATE, LEAST_STEPS, LEAST_TENSORS, find_ended_training
from oomscope.analysis.study import DeviceStudy, study_device
from tests.analysis.programs import MIB, STATE
from tests.passes.scripts import BACKWARD_CALL, MAKING, Script


def train(script: Script, line: int, steps: int, state: float, layer: float = 10) -> None:
    """A function that trains a layer of so many MiB: the last gradient stays, and what its optimizer made at first."""
    with script.call(line, "train"):
        gradient = None
        for step in range(steps):
            output = script.layer(20, 7, 3)
            if gradient is not None:
                script.free(gradient)
            gradient = script.at(21, layer, *BACKWARD_CALL)
            script.free(output)
            if step == 0 and state:
                script.at(22, state, *STATE[:3])


def phases(steps: int, anew: float, *, layer: float = 0.5, layers: int = 1, around: bool = False) -> DeviceStudy:
    script = Script()
    for round_ in range(2 if around else 1):
        script.at(5, 10, *MAKING)
        train(script, 6, steps, 20)
        for _ in range(layers):
            script.at(7, layer, *MAKING)
        if round_ == 0:
            train(script, 8, 1, anew, layer)
    script.layer(20, 7, 3)
    script.fails(9, 50)
    return study_device(script.snapshot(), 0)


def left(study: DeviceStudy) -> float | None:
    found = find_ended_training(study, study.history.entries - 1)
    return None if found is None else found.bytes / MIB


@pytest.mark.parametrize(("steps", "bytes_"), [(LEAST_STEPS, 30), (LEAST_STEPS - 1, None)])
def test_a_loop_has_a_few_steps(steps: int, bytes_: int | None) -> None:
    assert left(phases(steps, 20)) == bytes_


@pytest.mark.parametrize(("anew", "bytes_"), [(20 * LEAST_STATE, 30), (20 * LEAST_STATE - 1, None)])
def test_another_optimizer_has_begun(anew: float, bytes_: int | None) -> None:
    assert left(phases(5, anew)) == bytes_


@pytest.mark.parametrize(("layer", "bytes_"), [(10 * LEAST_STATE, 30), (10 * LEAST_STATE - 0.5, None)])
def test_gradients_beside_the_old_ones_are_of_another_model(layer: float, bytes_: int | None) -> None:
    assert left(phases(5, 0, layer=layer)) == bytes_


@pytest.mark.parametrize(("layers", "bytes_"), [(LEAST_TENSORS, 30), (LEAST_TENSORS - 1, None)])
def test_a_model_was_made_since(layers: int, bytes_: int | None) -> None:
    assert left(phases(5, 0, layers=layers)) == bytes_


def test_what_is_trained_again_in_a_loop_around_it_has_not_ended() -> None:
    assert left(phases(5, 20, around=True)) is None


@pytest.mark.parametrize(
    ("before", "now", "bytes_"),
    [(LEAST_TENSORS, LEAST_TENSORS, 60), (LEAST_TENSORS - 1, LEAST_TENSORS, None), (LEAST_TENSORS, 1, None)],
)
def test_a_loop_that_makes_a_model_in_each_pass_has_ended_the_training_before(
    before: int, now: int, bytes_: int | None
) -> None:
    """What it trained has not ended where its passes share one model, or this one has not made one yet."""
    script = Script()
    for _ in range(2):
        for _ in range(before):
            script.at(5, 10, *MAKING)
        train(script, 6, LEAST_STEPS, 20)
    for _ in range(now):
        script.at(5, 10, *MAKING)
    script.fails(5, 50, *MAKING)
    assert left(study_device(script.snapshot(), 0)) == bytes_


def test_it_is_told_where_the_loop_was() -> None:
    study = phases(5, 20)
    found = find_ended_training(study, study.history.entries - 1)
    assert found is not None
    assert study.loops.location(found.run).function == "train"
    assert ended_training.LEAST_STEPS == 3
