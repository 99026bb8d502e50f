"""The calls before of the function that runs the model: what the last went on to need, whether all were smaller."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import same_places
from oomscope.analysis.passes.same_call import LastCall, find_larger_call, find_last_call
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.causes import capacity
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.failed_requests import failed_requests
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import MIB
from tests.builders import frame
from tests.passes.scripts import BACKWARD_CALL, CALLED, LINEAR, OPTIMIZER_CALL, Script
from tests.verdict.stand_ins import outcome

MODEL = "/workspace/train/model.py"


def layer(line: int) -> tuple[dict[str, object], ...]:
    return (LINEAR, *CALLED, frame("forward", line, MODEL), *CALLED)


def validated(first: float = 64, *, failed: bool = False, modules: bool = True) -> Diagnosis:
    """A validation before the training, and one after it that fails at the second of the model's three layers."""
    below = layer if modules else lambda line: ()
    script = Script()
    with script.call(80, "fit"):
        with script.call(10, "validate"):
            kept = [script.at(32, 8, *below(10)), script.at(33, first, *below(11))]
            if failed:
                script.fails(34, 500, *below(12))
            else:
                kept.append(script.at(34, 300, *below(12)))
            script.free(*kept)
        with script.call(20, "train"):
            for _ in range(3):
                script.free(script.at(50, 16, *below(10)), script.at(51, 8, *OPTIMIZER_CALL))
            script.at(52, 100, *OPTIMIZER_CALL)
        with script.call(30, "validate"):
            script.at(32, 8, *below(10))
            script.fails(33, 64, *below(11))
    return diagnose(script.snapshot())


def test_a_call_from_another_line_tells_what_is_to_come() -> None:
    made = validated()
    assert find_last_call(made.study, made.at) == LastCall("validate", (64 + 300) * MIB)
    about = Circumstances(made.study, failed_requests(made.study)[-1])
    assert about.needs.still_to_come == 364 * MIB


@pytest.mark.parametrize(("first", "told"), [(64 / 1.04, True), (64 / 1.06, False), (64 * 1.06, False)])
def test_only_a_call_that_asked_for_as_much_tells(first: float, told: bool) -> None:
    assert same_places.SAME == 0.05
    made = validated(first)
    assert (find_last_call(made.study, made.at) is not None) is told


def test_a_call_that_failed_tells_nothing() -> None:
    made = validated(failed=True)
    assert find_last_call(made.study, made.at) is None


def test_nothing_is_told_where_no_module_is_called() -> None:
    made = validated(modules=False)
    assert find_last_call(made.study, made.at) is None


def test_nothing_is_told_of_what_autograds_own_thread_asks_for() -> None:
    script = Script()
    with script.call(10, "train"):
        script.free(script.at(32, 8, *layer(10)))
        script.fails(34, 64, *BACKWARD_CALL)
    made = diagnose(script.snapshot())
    assert find_last_call(made.study, made.at) is None


def test_the_first_call_has_none_before_it() -> None:
    script = Script()
    with script.call(10, "validate"):
        script.at(32, 8, *layer(10))
        script.fails(33, 64, *layer(11))
    made = diagnose(script.snapshot())
    assert find_last_call(made.study, made.at) is None


@pytest.mark.parametrize(("size", "ratio"), [(63, None), (64, None), (76, None), (77, 1.203), (640, 10.0)])
def test_a_call_that_asks_for_more_than_all_before_is_told_with_the_line_that_calls_it(
    size: float, ratio: float | None
) -> None:
    found = find_larger_call(*stepped(size))
    assert (None if found is None else found.ratio) == ratio
    if found is not None:
        assert found.function == "step"
        assert found.called_at is not None
        assert (found.called_at.function, found.called_at.line) == ("fit", 20)


def test_a_call_is_not_compared_with_one_that_failed() -> None:
    assert find_larger_call(*stepped(640, failed=True)) is None


def test_a_larger_call_is_told_first_where_no_pass_of_its_loop_has_finished() -> None:
    study, _ = stepped(640)
    about = Circumstances(study, failed_requests(study)[-1])
    assert about.needs.larger_call is not None
    assert next(one.code for one in capacity.headline(about, outcome("capacity"))) == "causes.pass.larger_call"


def stepped(size: float, *, failed: bool = False) -> tuple[DeviceStudy, int]:
    """Three calls of ``step`` with 32 to 64 MiB at a line, and one from elsewhere that asks for `size` MiB there."""
    script = Script()
    with script.call(80, "fit"):
        for earlier in (32, 48, 64):
            with script.call(20, "step"):
                kept = script.at(33, earlier, *layer(11))
            script.free(kept, script.at(70, 2))
        if failed:
            with script.call(20, "step"):
                script.fails(33, 640, *layer(11))
    with script.call(90, "fit"), script.call(20, "step"):
        script.at(33, size, *layer(11))  # the layer before, of the same class
        script.fails(33, size, *layer(11))
    made = diagnose(script.snapshot())
    return made.study, made.at
