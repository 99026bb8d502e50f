"""What was there before the recording, told by sizes, counts and ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.labels.before_recording import _MOST_STATES
from oomscope.analysis.records import CATEGORIES
from oomscope.history import BEFORE
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import (
    BACKWARD,
    BATCH,
    LOADING,
    MIB,
    STATE,
    TORCH,
    UPDATE,
    ZERO_GRAD,
    Program,
    Training,
    forward,
)
from tests.builders import block, entry, frame, loaded, segment
from tests.shared import needs_shared, shared_snapshot

SIZES = (6 * MIB, 3 * MIB, 3 * MIB, 2 * MIB)
WORKSPACE = 8_519_680


class Late(Program):
    """A model with gradients and states that were made before the recording began; `states` a parameter."""

    def __init__(self, states: int = 0, *, gradients: bool = False, stacks: bool = False) -> None:
        super().__init__()
        self.parameters = [self.alloc(size, LOADING) for size in SIZES]
        self.states = [self.alloc(size, BACKWARD) for size in SIZES for _ in range(states)]
        self.gradients = [self.alloc(size, BACKWARD) for size in SIZES] if gradients else []
        self.begin_recording(keep_stacks=stacks)

    def forward(self) -> list[int]:
        return [self.alloc(4 * MIB, forward(31 + layer)) for layer in range(3)]

    def backward(self, *, in_place: bool = False) -> list[int]:
        made = []
        for size in reversed(SIZES):
            made.append(self.alloc(size, BACKWARD))
            if in_place:
                self.free(made.pop())
        self.free(self.alloc(5 * MIB, BACKWARD))
        return made

    def step(self, *, in_place: bool = False) -> list[int]:
        """Forward, backward, and an optimizer that makes only what it drops."""
        activations = self.forward()
        made = self.backward(in_place=in_place)
        self.free(*activations)
        self.free(self.alloc(MIB, UPDATE))
        return made


def all_are(diagnosis: Diagnosis, category: str, addresses: Iterable[int]) -> bool:
    return {diagnosis.category(address) for address in addresses} <= {category}


def bytes_by_category(diagnosis: Diagnosis) -> dict[str, int]:
    live = diagnosis.history.lifetimes.freed >= diagnosis.history.entries
    size = diagnosis.history.size
    parts = {name: int(size[live & (diagnosis.categories == at)].sum()) for at, name in enumerate(CATEGORIES)}
    return {name: count for name, count in parts.items() if count}


def test_older_blocks_as_large_as_the_gradients_of_a_step_are_the_parameters():
    program = Late()
    gradients = program.step()
    diagnosis = diagnose(program.history()[0])
    assert all_are(diagnosis, "parameter", program.parameters)
    assert all_are(diagnosis, "gradient", gradients)


@pytest.mark.parametrize("states", [1, 2])
def test_what_is_left_of_them_for_each_parameter_is_the_state_of_its_optimizer(states: int):
    program = Late(states)
    program.step()
    found = bytes_by_category(diagnose(program.history()[0]))
    assert found == {"parameter": sum(SIZES), "gradient": sum(SIZES), "optimizer_state": states * sum(SIZES)}


def test_more_than_an_optimizer_keeps_is_unknown():
    program = Late(_MOST_STATES + 1)
    program.step()
    found = bytes_by_category(diagnose(program.history()[0]))
    assert found["optimizer_state"] == _MOST_STATES * sum(SIZES)
    assert found["unknown"] == sum(SIZES)


def test_gradients_that_are_added_to_are_there_though_no_new_one_is_made():
    program = Late(gradients=True)
    for _ in range(2):
        program.step(in_place=True)
    found = bytes_by_category(diagnose(program.history()[0]))
    assert found == {"parameter": sum(SIZES), "gradient": sum(SIZES)}


def test_states_that_a_step_replaces_are_no_gradients():
    """An optimizer that computes new moments out of place drops the old ones in its step."""
    program = Late(states=2)
    activations, gradients = program.forward(), program.backward()
    program.free(*activations)
    instant = len(program.entries) - 1
    for at, old in enumerate(program.states):
        program.alloc(SIZES[at // 2], UPDATE)
        program.free(old)
    program.alloc(512, UPDATE)
    diagnosis = diagnose(program.history()[0])
    live = diagnosis.history.lifetimes.allocated_at(instant)
    state = live & (diagnosis.categories == CATEGORIES.index("optimizer_state"))
    assert int(diagnosis.history.size[state].sum()) == 2 * sum(SIZES)
    assert all_are(diagnosis, "gradient", gradients)
    assert all_are(diagnosis, "parameter", program.parameters)


@pytest.mark.parametrize(
    ("by", "category"), [(UPDATE, "optimizer_state"), (ZERO_GRAD, "gradient"), (BATCH, "gradient")]
)
def test_the_stack_of_a_free_tells_states_from_gradients(by, category):
    """Where nothing else is allocated around it, as in a step that allocates nothing."""
    program = Late(gradients=True)
    program.free(*program.gradients, by=by)
    activations, gradients = program.forward(), program.backward()
    program.free(*activations, by=BATCH)
    program.free(program.alloc(MIB, UPDATE), by=BATCH)
    diagnosis = diagnose(program.history()[0])
    older = np.isin(diagnosis.history.lifetimes.address, program.gradients)
    assert {CATEGORIES[number] for number in diagnosis.categories[older]} == {category}
    assert all_are(diagnosis, "gradient", gradients)


def test_where_nothing_goes_backward_there_are_no_gradients():
    """Recording was started again in a program that only infers: no older block without a stack is a gradient."""
    program = Late(states=2)
    program.begin_recording(keep_stacks=True)
    for _ in range(3):
        program.free(*program.forward())
    assert bytes_by_category(diagnose(program.history()[0])) == {"unknown": 3 * sum(SIZES)}


def test_blocks_between_two_recordings_are_one_gradient_and_two_states_a_parameter():
    """The first recording saw the model, none what was made between them."""
    program = Program()
    parameters = [program.alloc(size, LOADING) for size in SIZES]
    older = [program.alloc(size, BACKWARD) for size in SIZES for _ in range(3)]
    program.begin_recording(keep_stacks=True)
    activations = [program.alloc(4 * MIB, forward(31))]
    program.free(*activations)
    program.free(program.alloc(MIB, UPDATE))
    diagnosis = diagnose(program.history()[0])
    assert all_are(diagnosis, "parameter", parameters)
    found = bytes_by_category(diagnosis)
    assert found == {"parameter": sum(SIZES), "gradient": sum(SIZES), "optimizer_state": 2 * sum(SIZES)}
    assert len(older) == 3 * len(SIZES)


def test_the_odd_size_of_a_cublas_workspace_tells_it_even_without_a_stack():
    program = Program()
    workspace, other = program.alloc(WORKSPACE, BACKWARD), program.alloc(WORKSPACE + 512, BACKWARD)
    program.begin_recording()
    program.free(program.alloc(MIB, BATCH))
    diagnosis = diagnose(program.history()[0])
    assert diagnosis.category(workspace) == "workspace"
    assert diagnosis.category(other) == "unknown"


PUBLIC = {
    # AdamW with new moments in each step; recording was started after a warm-up.
    "public/Wedsonlin__assignment2-systems__results__medium_128_training_memory_snapshot.pickle": (1616, 1617, 3232),
    "public/kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx128_fullstep_.pickle": (13125, 13124, 25998),
    "public/notHanmin__assignment2-systems__memory_snapshot.pickle": (3806, 3806, 7610),
    # Forward and backward again and again, and nothing clears the gradients.
    "public/MAGMA27__assignment2-systems__memory_snapshot.pickle": (494, 491, 0),
}


@needs_shared
@pytest.mark.parametrize("name", PUBLIC)
def test_recordings_of_others_that_began_late(name: str):
    """Parameters, gradients and two moments of the same model, at the peak and at the end."""
    diagnosis = diagnose(shared_snapshot(name))
    history = diagnosis.history
    for instant in (int(history.curves.allocated.argmax()) - 1, history.entries - 1):
        found = diagnosis.study.live_by(diagnosis.categories, CATEGORIES, instant)
        parameters, gradients, states = (found[name] for name in ("parameter", "gradient", "optimizer_state"))
        assert (parameters / MIB, gradients / MIB) == pytest.approx(PUBLIC[name][:2], abs=2)
        # A step underway has some moments twice.
        assert states / MIB == pytest.approx(PUBLIC[name][2], rel=0.05)


@pytest.mark.parametrize("others", [[], [entry("alloc", 1 << 41, MIB, frames=list(BATCH))]])
def test_what_waited_for_a_stream_when_the_recording_began_was_freed_at_no_entry(others: list[dict[str, Any]]):
    """A dump of a recording that was stopped has stacks and pending frees, and perhaps no entry at all."""
    known = [block(size, frames=LOADING) for size in Training.SIZES]
    pending = [block(size, "active_pending_free") for size in Training.SIZES]
    diagnosis = diagnose(loaded([segment(1 << 40, [*known, *pending])], [others]))
    found = diagnosis.categories[diagnosis.history.lifetimes.freed == BEFORE]
    assert [CATEGORIES[category] for category in found.tolist()] == ["unknown", "unknown"]


def test_states_tell_the_model_where_a_backward_makes_hardly_any_gradient():
    """Gradients are added in place; only that of one parameter is made anew, and dropped when it has been added."""
    program = Late(gradients=True)
    activations = program.forward()
    new = program.alloc(SIZES[0], BACKWARD)
    for size in SIZES[1:]:
        program.free(program.alloc(size, BACKWARD))
    program.free(program.alloc(5 * MIB, BACKWARD))
    program.free(*activations)
    for size in SIZES:
        for line in (174, 178):
            program.alloc(size, (frame("_init_group", line, f"{TORCH}/optim/adam.py"), *STATE[1:]))
    program.free(new)
    found = bytes_by_category(diagnose(program.history()[0]))
    assert found == {"parameter": sum(SIZES), "gradient": sum(SIZES), "optimizer_state": 2 * sum(SIZES)}
