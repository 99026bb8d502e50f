"""Graphs that are made and dropped without a backward."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels.dropped_graphs import _LEAST_LAYERS, _LEAST_STACKS
from oomscope.analysis.records import CATEGORIES
from tests.analysis.asking import diagnose
from tests.analysis.programs import BATCH, LOADING, MIB, Program, forward


def evaluated(layers: int, lines: int, *, graph: bool = True, size: int = 3 * MIB) -> tuple[str, ...]:
    """The categories of what a forward of so many equal layers makes at so many lines each, all dropped at its end."""
    program = Program()
    program.alloc(8 * MIB, LOADING)
    made: list[int] = []
    for _ in range(layers):
        new = [program.alloc(size, forward(31 + line)) for line in range(lines)]
        if not graph:
            program.free(*[one for one in made if one in program.live])
        made += new
    program.free(*[one for one in made if one in program.live])
    program.alloc(MIB, BATCH)
    diagnosis = diagnose(program.history()[0])
    rows = np.isin(diagnosis.history.lifetimes.address, made)
    return tuple({CATEGORIES[one] for one in diagnosis.categories[rows].tolist()})


def test_what_a_forward_keeps_until_its_end_is_saved_for_a_backward_that_never_comes():
    assert evaluated(_LEAST_LAYERS, _LEAST_STACKS) == ("activation",)


@pytest.mark.parametrize("fewer", [{"layers": _LEAST_LAYERS - 1}, {"lines": _LEAST_STACKS - 1}, {"graph": False}])
def test_caches_outputs_and_the_last_layers_are_no_graph(fewer: dict[str, int]):
    assert evaluated(**{"layers": _LEAST_LAYERS, "lines": _LEAST_STACKS, **fewer}) == ("temporary",)


def test_the_copies_of_weights_that_autocast_keeps_are_no_graph():
    """They are half as large as a weight of the model, and stay until autocast ends; its line makes the result next."""
    program = Program()
    program.alloc(8 * MIB, LOADING)
    copies: list[int] = []
    result = None
    for _ in range(2 * _LEAST_LAYERS):
        for line in range(_LEAST_STACKS):
            copies.append(program.alloc(8 * MIB // 2, forward(31 + line)))
            before, result = result, program.alloc(3 * MIB, forward(31 + line))
            program.free(*[one for one in (before,) if one is not None])
    program.free(*copies)
    program.alloc(MIB, BATCH)
    diagnosis = diagnose(program.history()[0])
    rows = np.isin(diagnosis.history.lifetimes.address, copies)
    assert {CATEGORIES[one] for one in diagnosis.categories[rows].tolist()} == {"temporary"}


def test_what_happens_to_be_half_as_large_as_a_weight_is_no_copy():
    assert evaluated(2 * _LEAST_LAYERS, _LEAST_STACKS, size=8 * MIB // 2) == ("activation",)
    assert evaluated(2 * _LEAST_LAYERS, _LEAST_STACKS, size=8 * MIB // 2 + 512) == ("activation",)
