"""What passes needed, and what the one underway holds already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.passes import last_pass as rules
from oomscope.analysis.passes.last_pass import at_work, last_like, most_needed, rise_of_needs, still_to_come
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.verdict import needs
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.failed_requests import failed_requests
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import MIB
from tests.passes.scripts import BACKWARD_CALL, OPTIMIZER_CALL, Script


def trained(*mib: float) -> Diagnosis:
    """Steps whose layers take so much, three each; the last fails after its first two."""
    script = Script()
    with script.call(50, "train"):
        for size in mib[:-1]:
            kept = [script.layer(32, 10 + layer, size) for layer in range(3)]
            script.free(script.at(34, 8, *BACKWARD_CALL), script.at(35, 8, *OPTIMIZER_CALL), *kept)
        for layer in range(2):
            script.layer(32, 10 + layer, mib[-1])
        script.fails(32, 500)
    return diagnose(script.snapshot())


def test_what_the_pass_underway_holds_is_its_own() -> None:
    made = trained(8, 8, 8, 12)
    assert at_work(made.study, made.at) == 24 * MIB
    assert at_work(made.study, made.at, 12 * MIB) == 24 * MIB
    assert at_work(made.study, made.at, 12 * MIB + 1) == 0


@pytest.mark.parametrize(("asked", "counted"), [(96, 24), (96.1, 0)])
def test_blocks_far_smaller_than_the_request_are_not_of_its_order(asked: float, counted: int) -> None:
    """One large request after many small ones may be the last of its kind."""
    assert needs.OF_THIS_ORDER == 8
    script = Script()
    with script.call(50, "evaluate"):
        for layer in range(2):
            script.layer(32, 10 + layer, 12)
        script.fails(32, asked)
    made = diagnose(script.snapshot())
    about = Circumstances(made.study, failed_requests(made.study)[-1])
    assert (about.needs.at_work, about.needs.made_so_far) == (counted * MIB, 24 * MIB)


def test_what_finished_passes_needed_at_most() -> None:
    made = trained(8, 12, 8, 30)
    assert most_needed(made.study, made.at) == (3 * 12 + 2 * 8) * MIB  # with what backward and the optimizer make
    alone = trained(8)
    assert most_needed(alone.study, alone.at) is None


def test_without_a_pass_all_activations_may_be_of_a_first_forward() -> None:
    script = Script()
    with script.call(50, "evaluate"):
        for line in range(4):
            script.layer(30 + line, 10 + line, 8)
        script.fails(34, 500)
    made = diagnose(script.snapshot())
    assert still_to_come(made.study, made.at) is None
    assert at_work(made.study, made.at) == 32 * MIB


@pytest.mark.parametrize(
    ("sizes", "rise"),
    [
        ((2, 4, 6, 8, 10, 10), 6),
        ((2, 4, 6, 8, 8), 6),
        ((2, 4, 6, 6), 0),  # two rises may be chance
        ((8, 8, 8, 8, 8, 8), 0),
        ((2, 8, 4, 8, 6, 10, 10), 0),  # lengths in no order
        ((10, 8, 6, 4, 2, 2), 0),
        ((20, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24), 6),  # the last ten tell
    ],
)
def test_needs_that_rise_from_pass_to_pass(sizes: tuple[float, ...], rise: int) -> None:
    """Three layers of each size: what a pass needs rises by three times as much."""
    assert (rules.MOST_COMPARED, rules.LEAST_RISING, rules.MOSTLY_RISING) == (10, 3, 0.8)
    made = trained(*sizes)
    assert rise_of_needs(made.study, made.at) == rise * MIB


@pytest.mark.parametrize(("epochs", "rise"), [((2, 4, 6, 8, 10, 12), 7), ((2, 8, 4, 8, 6, 10), 0)])
def test_epochs_tell_of_needs_what_their_few_batches_cannot(epochs: tuple[float, ...], rise: int) -> None:
    """Each has two batches of three layers, and one more MiB that stays."""
    script = Script()
    with script.call(50, "fit"):
        for size in epochs:
            script.at(28, 1)
            for _ in range(2):
                kept = [script.layer(32, 10 + layer, size) for layer in range(3)]
                script.free(script.at(34, 8, *BACKWARD_CALL), script.at(35, 8, *OPTIMIZER_CALL), *kept)
        script.layer(32, 10, epochs[-1])
        script.fails(32, 500)
    made = diagnose(script.snapshot())
    assert rise_of_needs(made.study, made.at) // MIB == rise


@pytest.mark.parametrize(
    ("stacks", "like"),
    [
        ([1, 2, 3, 1, 2, 1, 2, 3], 0),  # the first pass came to 3, the second did not
        ([1, 2, 1, 2, 3, 1, 2, 3], 1), ([1, 2, 1, 2, 1, 2, 3], 1), ([1, 2, -1, 1, 2, 1, 2, -1], 1), ([1, 2, 3], None),
    ],
)  # fmt: skip
def test_a_pass_is_compared_with_the_last_that_came_as_far(stacks: list[int], like: int | None) -> None:
    """A loop acts in every pass, by lines 1 and 2, and learns in some, by line 3; -1: nothing tells the line."""
    stack = np.array(stacks)
    run = LoopRun(0, 0, len(stack), np.flatnonzero(stack == 1), -1, certain=True, thread=False, one_line=False)
    study: Any = SimpleNamespace(history=SimpleNamespace(trace=SimpleNamespace(stack=stack)))
    assert last_like(study, run, len(stack) - 1) == like
