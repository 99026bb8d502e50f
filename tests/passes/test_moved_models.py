"""Models that one line moves to the card and away again."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.moved_models import LEAST_FREED, may_take_turns
from tests.analysis.asking import diagnose
from tests.analysis.programs import MIB
from tests.passes.scripts import MAKING, Script


def turns(first: float, second: float, *, second_line: int = 89) -> float:
    """MiB that may be due to leave, where a model of so many has left, and one of so many has stayed."""
    script = Script()
    leaving = script.at(89, first, *MAKING)
    script.at(second_line, second, *MAKING)
    script.layer(141, 7, 2)
    script.free(leaving)
    script.fails(141, 100)
    made = diagnose(script.snapshot())
    return may_take_turns(made.study, made.at) / MIB


def test_what_a_line_has_moved_to_the_card_may_leave_as_others_did() -> None:
    assert turns(8, 40) == 40


def test_what_another_line_moved_there_stays() -> None:
    assert turns(8, 40, second_line=20) == 0


@pytest.mark.parametrize(("left", "expected"), [(40 * LEAST_FREED, 40), (40 * LEAST_FREED - 0.5, 0)])
def test_few_parameters_that_were_replaced_are_no_model(left: float, expected: float) -> None:
    assert turns(left, 40) == expected
