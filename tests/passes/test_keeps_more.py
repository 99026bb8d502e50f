"""A pass that asks for the same as one before it, and frees less of what it makes."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import keeps_more as rules
from oomscope.analysis.passes.failing_pass import find_failing_pass
from oomscope.analysis.passes.keeps_more import keeps_more
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import MIB
from tests.passes.scripts import BACKWARD_CALL, OPTIMIZER_CALL, Script


def failing(layers: int = 6, *, size: float = 20, kept: int = 5) -> Diagnosis:
    """Passes that free each layer's output once the next one is made; the last one keeps so many, and fails."""
    script = Script()
    with script.call(50, "train"):
        for number in range(4):
            last = number == 3
            alive: list[int] = []
            for one in range(layers - 1):
                alive.append(script.layer(32, 10 + one, size))
                if len(alive) > (kept if last else 1):
                    script.free(alive.pop(0))
            if last:
                script.oom(int(size * MIB), script.layer_stack(32, 10 + layers - 1))
                break
            script.free(*alive, script.layer(32, 10 + layers - 1, size))
            script.free(script.at(34, 8, *BACKWARD_CALL), script.at(35, 8, *OPTIMIZER_CALL))
    return diagnose(script.snapshot())


def test_what_the_last_pass_had_freed_at_the_same_request() -> None:
    made = failing()
    found = find_failing_pass(made.study, made.at)
    assert found is not None
    assert found.keeps is not None
    assert (found.keeps.bytes, found.keeps.before) == (100 * MIB, 20 * MIB)
    assert found.keeps.place is not None
    assert (found.ratio, found.is_larger, found.frees_less) == (1.0, False, True)


def test_a_pass_that_asks_for_more_at_the_same_place_does_not_ask_for_the_same() -> None:
    script = Script()
    with script.call(50, "train"):
        for number in range(4):
            size = 60 if number == 3 else 20
            alive = [script.layer(32, 10 + one, size) for one in range(5)]
            if number == 3:
                script.oom(size * MIB, script.layer_stack(32, 15))
                break
            script.free(*alive, script.layer(32, 15, size))
            script.free(script.at(34, 8, *BACKWARD_CALL), script.at(35, 8, *OPTIMIZER_CALL))
    made = diagnose(script.snapshot())
    assert keeps_more(made.study, made.at) is None


@pytest.mark.parametrize(("kept", "told"), [(1, False), (2, True), (5, True)])
def test_twice_as_much_and_a_third_of_all_are_told(kept: int, told: bool) -> None:
    assert (rules.LEAST_RATIO, rules.LEAST_SHARE) == (2.0, 0.3)
    made = failing(kept=kept)
    assert (keeps_more(made.study, made.at) is not None) is told
