"""What the last call of the function that runs the model went on to need, from the request that fails this time."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import same_places
from oomscope.analysis.passes.same_call import LastCall, find_last_call
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.failed_requests import failed_requests
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import MIB
from tests.builders import frame
from tests.passes.scripts import BACKWARD_CALL, CALLED, LINEAR, OPTIMIZER_CALL, Script

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
