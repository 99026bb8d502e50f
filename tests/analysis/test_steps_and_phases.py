"""Phases of allocations and steps of programs."""

from __future__ import annotations

import pytest

from tests.analysis.asking import diagnose
from tests.analysis.programs import BATCH, MIB, Program, Training, forward


def test_a_step_ends_with_the_optimizers_annotation():
    program = Training()
    for _ in range(4):
        program.step()
    steps = diagnose(program.history()[0]).steps
    assert (steps.count, steps.source) == (4, "annotations")


@pytest.mark.parametrize("rounds", [2, 5])
def test_without_annotations_allocations_of_the_optimizer_end_a_step(rounds):
    program = Training(annotated=False)
    for _ in range(rounds):
        program.step()
    steps = diagnose(program.history()[0]).steps
    assert (steps.count, steps.source) == (rounds, "inferred")


def test_the_first_step_begins_after_the_model_is_made():
    program = Training()
    for _ in range(3):
        program.step()
    assert diagnose(program.history()[0]).steps.boundaries[0] == len(program.SIZES)


def test_an_unfinished_forward_is_a_step_of_its_own():
    program = Training()
    program.step()
    program.alloc(MIB, BATCH)
    program.forward()
    program.oom(64 * MIB, forward(31))
    assert diagnose(program.history()[0]).steps.count == 2


def test_two_optimizers_that_take_turns_make_one_step():
    program = Training()
    for _ in range(4):
        for line in (60, 80):
            program.free(*[program.alloc(4 * MIB, forward(line + layer)) for layer in range(3)])
            program.free(program.alloc(6 * MIB, ()))
            program.optimize()
    assert diagnose(program.history()[0]).steps.count == 4


def test_recorded_marks_go_before_annotations():
    program = Training()
    begins = []
    for _ in range(3):
        begins.append({"name": "s", "begin_us": program.time})
        program.step()
    steps = diagnose(program.history(oomscope={"schema_version": 1, "steps": begins})[0]).steps
    assert (steps.count, steps.source) == (3, "recorded")


def test_strange_marks_are_no_steps():
    program = Training()
    program.step()
    strange = [{"begin_us": 1 << 80}, {"begin_us": "now"}, 7, None]
    assert diagnose(program.history(oomscope={"steps": strange})[0]).steps.source == "annotations"


def test_a_loop_of_inference_is_found_from_what_repeats():
    program = Program()
    for _ in range(6):
        batch = program.alloc(MIB, BATCH)
        kept = [program.alloc(2 * MIB, forward(31 + layer)) for layer in range(3)]
        program.free(batch, *kept)
    assert diagnose(program.history()[0]).steps.count == 6


def test_the_layers_of_one_forward_are_no_steps():
    program = Program()
    for _ in range(12):
        program.alloc(2 * MIB, (forward(1)[0], *forward(31)))
        program.alloc(2 * MIB, (forward(1)[1], *forward(31)))
    program.oom(2 * MIB, forward(31))
    diagnosis = diagnose(program.history()[0])
    assert diagnosis.steps.source == "none"
    assert diagnosis.growth() == ()


def test_every_step_knows_its_own_peak():
    program = Training()
    for scale in (1, 3, 2):
        program.step(scale=scale)
    peaks = [step.peak_allocated for step in diagnose(program.history()[0]).steps.steps]
    assert peaks[1] > peaks[2] > peaks[0]


def test_phases_of_a_training_step():
    program = Training()
    program.step()
    batch, (activation, *_) = program.alloc(MIB, BATCH), program.forward()
    gradient = program.alloc(6 * MIB, ())
    diagnosis = diagnose(program.history()[0])
    assert diagnosis.phase(program.parameters[0]) == "other"
    assert diagnosis.phase(program.states[0]) == "optimizer"
    assert diagnosis.phase(batch) == "other"
    assert diagnosis.phase(activation) == "forward"
    assert diagnosis.phase(gradient) == "backward"


def test_without_any_stack_nothing_is_called_backward():
    program = Program()
    address = program.alloc(4 * MIB, ())
    diagnosis = diagnose(program.history()[0])
    assert diagnosis.phase(address) == "other"
    assert diagnosis.category(address) == "unknown"


def test_an_empty_trace_has_no_steps():
    program = Training()
    program.entries.clear()
    snapshot, _ = program.history()
    study = diagnose(snapshot)
    assert study.steps.source == "none"
    assert len(study.phases) == len(program.SIZES)
