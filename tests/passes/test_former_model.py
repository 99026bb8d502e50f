"""What the training of a model has left that another one has followed, by the trace alone."""

from __future__ import annotations

from oomscope.analysis.passes.former_model import FormerModel, find_former_model
from oomscope.analysis.study import study_device
from tests.analysis.programs import MIB, STATE
from tests.passes.scripts import BACKWARD_CALL, MAKING, Script

LAYERS = (8, 6, 5, 7)


def steps(script: Script, line: int, count: int, *, state: bool) -> None:
    """Steps that drop the gradients of the one before; the last ones stay."""
    gradients: list[int] = []
    for step in range(count):
        output = script.layer(line, 7, 3)
        for one in gradients:
            script.free(one)
        gradients = [script.at(line + 1, size, *BACKWARD_CALL) for size in LAYERS]
        script.free(output)
        if step == 0 and state:
            for size in LAYERS:
                script.at(line + 2, size, *STATE[:3])


def found(*, follows: bool = True, trains: bool = True) -> FormerModel | None:
    script = Script()
    for size in LAYERS:
        script.at(5, size, *MAKING)
    steps(script, 10, 3, state=True)
    for size in LAYERS if follows else ():
        script.at(6, size, *MAKING)
    if trains:
        steps(script, 20, 2, state=False)
    script.fails(30, 50)
    study = study_device(script.snapshot(), 0)
    return find_former_model(study, study.history.entries - 1)


def test_gradients_and_states_of_a_model_that_is_not_trained_any_more():
    left = found()
    assert left is not None
    assert left.bytes == 2 * sum(LAYERS) * MIB
    assert left.place is not None
    assert left.place.line == 5


def test_the_model_itself_may_be_in_use():
    left = found()
    assert left is not None
    assert left.bytes < 3 * sum(LAYERS) * MIB


def test_one_model_that_is_trained_on():
    assert found(follows=False) is None


def test_another_model_that_is_only_made():
    assert found(trains=False) is None
