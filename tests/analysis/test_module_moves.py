"""Parameters, gradients and buffers that `Module.to` moves; and other ways to make a model and its states."""

from __future__ import annotations

from typing import Any

import pytest

from oomscope.analysis.labels.module_moves import _PARAMETERS_WITHIN
from tests.analysis.asking import diagnose
from tests.analysis.programs import BACKWARD, BATCH, MAIN, MIB, STATE, TORCH, UPDATE, Program, Training, forward
from tests.builders import frame

MODULE = f"{TORCH}/nn/modules/module.py"
RELEASES = {  # recursion, parameters, gradients, buffers
    "2.1": (903, 930, 998, 1021),
    "2.11": (934, 965, 996, 1035),
    "closer": (100, 110, 114, 118),
}


def moving(line: int, recursive: int | None) -> tuple[dict[str, Any], ...]:
    outer = () if recursive is None else (frame("_apply", recursive, MODULE),)
    return (frame("convert", 1, MODULE), frame("_apply", line, MODULE), *outer, frame("to", 2, MODULE), MAIN)


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("release", RELEASES)
def test_gradients_that_are_moved_along_are_gradients_and_buffers_are_buffers(release: str, nested: bool):
    recursive, parameters, gradients, buffers = RELEASES[release]
    outer = recursive if nested else None
    program, expected = Program(), {}
    for size in (6 * MIB, 3 * MIB, 2 * MIB):
        expected[program.alloc(size, moving(parameters, outer))] = "parameter"
        expected[program.alloc(size, moving(gradients, outer))] = "gradient"
        expected[program.alloc(size + MIB, moving(buffers, outer))] = "buffer"
    diagnosis = diagnose(program.history()[0])
    assert {address: diagnosis.category(address) for address in expected} == expected


@pytest.mark.parametrize("release", RELEASES)
def test_two_lines_are_parameters_and_buffers_unless_each_follows_its_like(release: str):
    recursive, parameters, _, buffers = RELEASES[release]
    program, expected = Program(), {}
    for size in (6 * MIB, 3 * MIB):  # as large as one of the parameters, but not the one before it
        expected[program.alloc(size, moving(parameters, recursive))] = "parameter"
        expected[program.alloc(9 * MIB - size, moving(buffers, recursive))] = "buffer"
    diagnosis = diagnose(program.history()[0])
    assert {address: diagnosis.category(address) for address in expected} == expected


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("with_buffer", [True, False])
@pytest.mark.parametrize("release", RELEASES)
def test_without_entries_gradients_are_told_by_their_line_and_their_sizes(
    release: str, with_buffer: bool, trained: bool
):
    """The buffers of a normalization are as large as its parameters, but no convolution has any."""
    recursive, parameters, gradients, buffers = RELEASES[release]
    lines = [parameters, *([gradients] if trained else []), *([buffers] if with_buffer else [])]
    names = ["parameter", *(["gradient"] if trained else []), *(["buffer"] if with_buffer else [])]
    program, expected = Program(), {}
    for line, name in zip(lines, names, strict=True):
        for size in (MIB, 2 * MIB) if name == "buffer" else (6 * MIB, MIB, 2 * MIB):
            expected[program.alloc(size, moving(line, recursive))] = name
    program.begin_recording(keep_stacks=True)
    diagnosis = diagnose(program.history()[0])
    assert {address: diagnosis.category(address) for address in expected} == expected


@pytest.mark.parametrize(
    ("behind", "category"), [(_PARAMETERS_WITHIN, "parameter"), (_PARAMETERS_WITHIN + 1, "buffer")]
)
def test_a_line_that_is_seen_alone_is_told_by_its_distance_from_the_recursion(behind: int, category: str):
    program = Program()
    only = program.alloc(2 * MIB, moving(934 + behind, 934))
    assert diagnose(program.history()[0]).category(only) == category


def test_the_flattened_weights_of_an_rnn_are_a_parameter():
    program = Program()
    apply = (frame("_apply", 304, f"{TORCH}/nn/modules/rnn.py"), frame("to", 2, MODULE), MAIN)
    flat = program.alloc(36 * MIB, (
        frame("flatten_parameters", 285, f"{TORCH}/nn/modules/rnn.py"),
        frame("_init_flat_weights", 228, f"{TORCH}/nn/modules/rnn.py"),
        *apply,
    ))  # fmt: skip
    activation = program.alloc(4 * MIB, (frame("forward", 1169, f"{TORCH}/nn/modules/rnn.py"), *forward()[1:]))
    diagnosis = diagnose(program.history()[0])
    assert (diagnosis.category(flat), diagnosis.category(activation)) == ("parameter", "activation")


@pytest.mark.parametrize(
    ("file", "lines", "categories"),
    [
        ("megatron/core/distributed/param_and_grad_buffer.py", (700, 720), ("parameter", "gradient")),
        ("megatron/core/distributed/param_and_grad_buffer.py", (720, 720), ("gradient", "gradient")),
        ("megatron/core/distributed/grad_buffer.py", (120, 120), ("gradient", "gradient")),
        ("megatron/core/tensor_parallel/layers.py", (700, 720), ("unknown", "unknown")),
    ],
)
def test_megatrons_buffers_are_of_parameters_above_and_of_gradients_below(file: str, lines, categories):
    program = Program()
    blocks = [program.alloc(8 * MIB, (frame("__init__", line, f"/opt/Megatron-LM/{file}"), *BATCH)) for line in lines]
    diagnosis = diagnose(program.history()[0])
    assert tuple(map(diagnosis.category, blocks)) == categories


def test_megatrons_shards_of_main_parameters_are_the_optimizers():
    program = Program()
    shard = program.alloc(8 * MIB, (
        frame("_build_main_param_groups", 376, "/opt/Megatron-LM/megatron/core/optimizer/distrib_optimizer.py"),
        *BATCH,
    ))  # fmt: skip
    program.begin_recording(keep_stacks=True)
    assert diagnose(program.history()[0]).category(shard) == "optimizer_state"


def test_what_torch_calls_from_cpp_runs_in_a_backward():
    """FSDP's hook behind the backward reduces gradients; its outermost Python frame is torch's ``no_grad``."""
    program = Training()
    hook = (
        frame("_get_shard", 1000, f"{TORCH}/distributed/fsdp/_flat_param.py"),
        frame("_reduce_grad", 900, f"{TORCH}/distributed/fsdp/_runtime_utils.py"),
        frame("_post_backward_hook", 700, f"{TORCH}/distributed/fsdp/_runtime_utils.py"),
        frame("decorate_context", 120, f"{TORCH}/utils/_contextlib.py"),
    )
    activations = program.forward()
    flat = program.alloc(program.SIZES[0], hook)
    program.free(*activations)
    program.optimize()
    diagnosis = diagnose(program.history()[0])
    assert (diagnosis.category(flat), diagnosis.phase(flat)) == ("gradient", "backward")


def test_what_a_foreach_optimizer_makes_for_a_moment_is_temporary_even_in_its_first_step():
    program = Training()
    activations = program.forward()
    gradients = [program.alloc(size, BACKWARD) for size in reversed(program.SIZES)]
    program.free(*activations)
    program.mark("Optimizer.step#AdamW.step", "START")
    states = [program.alloc(size, STATE) for size in program.SIZES for _ in range(2)]
    passing = [program.alloc(size, UPDATE) for size in program.SIZES]
    program.oom(64 * MIB, UPDATE)
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(block) for block in passing} == {"temporary"}
    assert {diagnosis.category(block) for block in states} == {"optimizer_state"}
    assert {diagnosis.category(block) for block in gradients} == {"gradient"}


def test_the_momentum_of_sgd_is_a_state_though_its_update_makes_it():
    program = Training()
    sgd = f"{TORCH}/optim/sgd.py"
    momentum = (frame("_multi_tensor_sgd", 440, sgd), frame("step", 120, sgd), *STATE[2:])
    activations = program.forward()
    gradients = [program.alloc(size, BACKWARD) for size in reversed(program.SIZES)]
    program.free(*activations)
    states = [program.alloc(size, momentum) for size in program.SIZES]
    program.oom(64 * MIB, momentum)
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(block) for block in states} == {"optimizer_state"}
    assert {diagnosis.category(block) for block in gradients} == {"gradient"}


def test_an_optimizer_that_steps_in_a_hook_makes_states():
    """Optimizer-in-backward: the step runs in the engine's thread, below torch's own frames."""
    program = Training()
    in_hook = (*STATE[:3], frame("_hook", 50, f"{TORCH}/distributed/optim/apply_optimizer_in_backward.py"))
    activations = program.forward()
    states = [program.alloc(size, in_hook) for size in program.SIZES for _ in range(2)]
    program.free(*activations)
    program.free(program.alloc(MIB, BATCH), *program.forward())
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(block) for block in states} == {"optimizer_state"}


CONSTRUCTOR = (frame("__init__", 7, "/workspace/train/data.py"), *BATCH)
NESTED = (frame("__init__", 3, "/workspace/train/layers.py"), frame("__init__", 9, "/workspace/train/model.py"), *BATCH)


@pytest.mark.parametrize(("stack", "category"), [(CONSTRUCTOR, "unknown"), (NESTED, "parameter")])
def test_what_a_single_constructor_puts_on_the_device_may_be_a_data_set(stack, category: str):
    """Before anything is trained or run: layers are made by the constructor of a model, scans by that of a data set."""
    program = Program()
    blocks = [program.alloc(4 * MIB, stack) for _ in range(6)]
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(block) for block in blocks} == {category}


@pytest.mark.parametrize(("model", "category"), [(False, "parameter"), (True, "unknown")])
def test_what_a_forward_has_to_run_on_is_the_model(model: bool, category: str):
    program = Program()
    if model:
        program.alloc(2 * MIB, moving(965, 934))
    blocks = [program.alloc(4 * MIB, CONSTRUCTOR) for _ in range(6)]
    program.free(program.alloc(4 * MIB, forward(31)))
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(block) for block in blocks} == {category}


@pytest.mark.parametrize(("size", "category"), [(6 * MIB, "parameter"), (5 * MIB, "buffer")])
def test_what_a_constructor_made_is_a_parameter_if_a_gradient_is_as_large(size: int, category: str):
    program = Program()
    block = program.alloc(size, CONSTRUCTOR)
    trained = program.alloc(6 * MIB, CONSTRUCTOR)
    activations = [program.alloc(4 * MIB, forward(31))]
    program.alloc(6 * MIB, BACKWARD)
    program.free(*activations)
    program.free(program.alloc(MIB, UPDATE))
    diagnosis = diagnose(program.history()[0])
    assert (diagnosis.category(block), diagnosis.category(trained)) == (category, "parameter")
