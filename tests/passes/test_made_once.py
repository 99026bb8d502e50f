"""State and gradients that come once with each parameter, however many passes follow."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.made_once import MOST_ADDED, MOST_STATE, made_once
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import LOADING, MIB, STATE
from tests.builders import frame
from tests.passes.scripts import TORCH, Script

LBFGS = (
    frame("step", 444, f"{TORCH}/optim/lbfgs.py"),
    frame("wrapper", 533, f"{TORCH}/optim/optimizer.py"),
)


def population(members: int, *, added: bool = False) -> Diagnosis:
    """Models that were made before, or are `added` pass by pass, and get their state one a pass."""
    script = Script()

    def model(line: int) -> None:
        for _ in range(4):
            script.at(line, 8, *LOADING)

    if not added:
        for _ in range(members):
            model(3)
    with script.call(50, "train"):
        for _ in range(members - 1):
            if added:
                model(30)
            x = script.layer(31, 10, 2)
            for _ in range(8):
                script.at(33, 8, *STATE)
            script.free(x)
        script.fails(31, 64)
    return diagnose(script.snapshot())


def test_the_state_of_models_that_were_there_is_no_growth():
    found = population(8)
    assert (MOST_STATE, MOST_ADDED) == (3.0, 0.05)
    assert not find_growth(found.study, found.at)


def test_the_state_of_models_that_each_pass_makes_is():
    found = population(8, added=True)
    assert not made_once(found.study, found.at).any()


@pytest.mark.parametrize(("below", "grows"), [(LBFGS, False), ((), True)])
def test_the_history_of_lbfgs_is_none(below: tuple[dict[str, object], ...], grows: bool):
    script = Script()
    script.at(3, 8, *LOADING)
    with script.call(50, "train"):
        for _ in range(12):
            x = script.layer(31, 10, 2)
            script.at(33, 8, *below)
            script.at(33, 8, *below)
            script.free(x)
        script.fails(31, 64)
    found = diagnose(script.snapshot())
    assert bool(find_growth(found.study, found.at)) is grows
    assert int(found.study.history.size[made_once(found.study, found.at)].sum()) == (0 if grows else 24 * 8 * MIB)
