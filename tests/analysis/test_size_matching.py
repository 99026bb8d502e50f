"""Thresholds of what is told by sizes, at their edges."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels import before_recording, categories, model_cost, module_moves, optimizer_states
from oomscope.analysis.labels.size_matching import LEAST_SIZES, NEARLY_ALL, SCALAR, copies_all, shared_bytes
from tests.analysis.asking import diagnose
from tests.analysis.programs import BACKWARD, LOADING, MAIN, MIB, STATE, TORCH, UPDATE, Program, forward
from tests.analysis.test_before_recording import Late, bytes_by_category
from tests.analysis.test_model_cost import SIZES, SUM, FirstStep, line
from tests.builders import frame

MODEL = np.array([50, 30, 10, 10])


def test_shared_bytes_counts_each_tensor_once():
    assert shared_bytes(np.array([5, 5, 5, 3]), np.array([5, 5, 4])) == 10
    assert shared_bytes(np.array([5]), np.zeros(0, np.int64)) == shared_bytes(np.zeros(0, np.int64), np.array([5])) == 0


@pytest.mark.parametrize(
    ("copy", "found"),
    [
        ([50, 30, 10, 10], True),
        ([50, 30, 10], True),  # nine tenths of the model
        ([50, 30, 9, 9], False),
        ([50, 30, 10, 10, 11], True),  # a little more than nine tenths of the copy
        ([50, 30, 10, 10, 12], False),
        ([50], False),
    ],
)
def test_a_copy_shares_nearly_all_of_both(copy: list[int], found: bool):
    assert pytest.approx(0.9) == NEARLY_ALL
    assert copies_all(np.array(copy), MODEL) == found


def test_a_model_may_be_there_more_than_once_already():
    assert copies_all(MODEL, np.concatenate([MODEL, MODEL, MODEL]))


@pytest.mark.parametrize("sizes", range(1, LEAST_SIZES + 1))
def test_a_single_size_proves_nothing(sizes: int):
    copy = np.repeat([40, 20][:sizes], 4)
    assert copies_all(copy, copy) == (sizes >= LEAST_SIZES)


def cloning(tensors: int) -> Program:
    """A model of so many tensors, and a line that clones each of them."""
    program = Program()
    sizes = [6 * MIB, *[3 * MIB] * (tensors - 1)]
    for size in sizes:
        program.alloc(size, LOADING)
    for size in sizes:
        program.alloc(size, (frame("snapshot_of", 5, "/workspace/train/train.py"), MAIN))
    return program


@pytest.mark.parametrize("fewer", [0, 1])
def test_a_line_that_clones_a_model_makes_parameters_from_four_tensors_on(fewer: int):
    found = bytes_by_category(diagnose(cloning(categories._LEAST_COPIED - fewer).history()[0]))
    assert ("unknown" in found) == (fewer == 1)


# Before the recording: states come for the whole model, or not at all.


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_states_are_there_for_nearly_the_whole_model(missing: int):
    """Of 14 MiB, half a MiB may be missing; with one and a half, what is left is something else."""
    program = Program()
    sizes = (6 * MIB, 5 * MIB, MIB + MIB // 2, MIB, MIB // 2)
    for size in (*sizes, *sizes[: len(sizes) - missing]):
        program.alloc(size, LOADING)
    program.begin_recording()
    activations = [program.alloc(4 * MIB, forward(31))]
    for size in reversed(sizes):
        program.alloc(size, BACKWARD)
    program.free(*activations)
    program.free(program.alloc(MIB, UPDATE))
    share = sum(sizes[: len(sizes) - missing]) / sum(sizes)
    is_state = "optimizer_state" in bytes_by_category(diagnose(program.history()[0]))
    assert is_state == (share >= before_recording._NEARLY_ALL) == (missing < 2)


@pytest.mark.parametrize("times", range(1, 6))
def test_gradients_that_are_added_to_are_seen_beside_up_to_two_states(times: int):
    """The model is there so often: parameters, gradients, and 0 to 2 states each. Once cannot be; 5 is unknown."""
    program = Late(states=max(times - 2, 0), gradients=times > 1)
    program.step(in_place=True)
    found = bytes_by_category(diagnose(program.history()[0]))
    if times in before_recording._TIMES_ACCUMULATED:
        assert found["parameter"] == found["gradient"]
        assert found.get("optimizer_state", 0) == (times - 2) * found["parameter"]
    else:
        assert set(found) == {"unknown"}


# Module.to: a line moves gradients where nearly all that it moves follows its like.


@pytest.mark.parametrize(("others", "category"), [(1, "gradient"), (2, "buffer")])
def test_a_line_moves_gradients_if_nearly_all_follow_their_parameters(others: int, category: str):
    module = f"{TORCH}/nn/modules/module.py"
    stacks = {
        number: (frame("convert", 1, module), frame("_apply", number, module), frame("_apply", 934, module), MAIN)
        for number in (965, 996)
    }
    program, moved = Program(), []
    for _ in range(9):
        program.alloc(2 * MIB, stacks[965])
        moved.append(program.alloc(2 * MIB, stacks[996]))
    # And some of parameters that were on the device before.
    moved += [program.alloc(2 * MIB, stacks[996]) for _ in range(others)]
    assert (9 / (9 + others) >= module_moves._NEARLY_ALL) == (category == "gradient")
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(block) for block in moved} == {category}


# The bill.


@pytest.mark.parametrize(("frozen", "all_trained"), [(1, True), (2, False)])
def test_with_nearly_all_gradients_there_all_parameters_are_trained(frozen: int, all_trained: bool):
    program = FirstStep(teacher=(frozen * MIB,))
    program.states(4)
    assert (SUM / (SUM + frozen * MIB) >= model_cost._NEARLY_ALL) == all_trained
    assert program.bill()["gradients"][0] == (SUM + frozen * MIB if all_trained else SUM)


@pytest.mark.parametrize(("other", "told"), [(1, True), (4, False)])
def test_states_tell_if_nearly_all_are_as_large_as_parameters(other: int, told: bool):
    program = FirstStep()
    program.states(4)
    program.alloc(other * MIB - 512, line(178))
    whole = sum(SIZES) / (sum(SIZES) + other * MIB)
    assert (whole >= optimizer_states._NEARLY_ALL) == told
    assert program.bill()["optimizer_state"][0] == (2 * SUM if told else None)


@pytest.mark.parametrize("size", [SCALAR, SCALAR + 1])
def test_counters_of_steps_are_no_states(size: int):
    program = FirstStep()
    program.states(4)
    for _ in range(8):
        program.alloc(size, (frame("_init_group", 150, f"{TORCH}/optim/adam.py"), *STATE[1:]))
    assert program.bill()["optimizer_state"][0] == 2 * SUM
