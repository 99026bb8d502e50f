"""Categories of allocations, against what the programs themselves knew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomscope.analysis.labels.workspaces import MOST_HANDLES
from oomscope.analysis.records import CATEGORIES, PHASES
from tests.analysis.asking import diagnose, right_bytes
from tests.analysis.programs import BATCH, LOADING, LOSS, MIB, MOVING_BUFFER, STATE, TORCH, Program, Training, forward
from tests.builders import frame
from tests.shared import captures, needs_shared, shared_snapshot, truth

LEAST = {"late_start": 90.0, "ring_wrapped": 90.0, "state_only": 90.0}


@needs_shared
@pytest.mark.parametrize("name", captures())
def test_labelled_bytes_of_real_captures(name):
    """97 % of labelled bytes are right; 90 % where the recording began late or lost its beginning."""
    snapshot, labels = shared_snapshot(name), truth(name).get("labels")
    if not labels:
        pytest.skip("nothing is labelled")
    right = total = 0
    for device in snapshot.devices:
        diagnosis = diagnose(snapshot, device.index)
        some, every = right_bytes(diagnosis, labels)
        right, total = right + some, total + every
    print(f"{name}: {100 * right / total:.2f} % of {total >> 20} MiB")
    if name == "no_history":
        assert set(diagnosis.categories.tolist()) == {CATEGORIES.index("unknown")}
    else:
        assert 100 * right / total >= LEAST.get(name, 97.0)


@needs_shared
@pytest.mark.parametrize("name", captures())
def test_categories_and_phases_sum_to_the_curve_at_any_instant(name):
    snapshot = shared_snapshot(name)
    for device in snapshot.devices:
        diagnosis = diagnose(snapshot, device.index)
        history = diagnosis.history
        for entry in np.linspace(-1, history.entries - 1, 7).astype(int).tolist():
            live = history.lifetimes.allocated_at(entry)
            for kind, names in ((diagnosis.categories, CATEGORIES), (diagnosis.phases, PHASES)):
                parts = [int(history.size[live & (kind == number)].sum()) for number in range(len(names))]
                assert sum(parts) == history.curves.at(entry)[0]


def test_everything_in_a_training_step_has_its_category():
    program = Training()
    program.step()
    program.step()
    batch, (activation, *_) = program.alloc(MIB, BATCH), program.forward()
    gradients = [program.alloc(size, ()) for size in reversed(program.SIZES)]
    temporary = program.alloc(5 * MIB, ())
    diagnosis = diagnose(program.history()[0])
    found = {
        "parameter": program.parameters, "optimizer_state": program.states, "gradient": gradients,
        "activation": [activation], "input": [batch], "temporary": [temporary],
    }  # fmt: skip
    for category, addresses in found.items():
        assert {diagnosis.category(address) for address in addresses} == {category}
    assert diagnosis.source == "inferred"


def test_a_moved_buffer_is_no_parameter():
    program = Training()
    buffer = program.alloc(2 * MIB, MOVING_BUFFER)
    assert diagnose(program.history()[0]).category(buffer) == "buffer"


def test_layers_that_a_container_is_given_one_by_one_are_parameters():
    """``ModuleList(Layer() for …)`` runs constructors of the program below ``extend`` of torch's container."""
    layers = (
        frame("__init__", 12, "/workspace/train/model.py"),
        frame("__init__", 20, "/workspace/train/model.py"),
        frame("<genexpr>", 30, "/workspace/train/model.py"),
        frame("extend", 498, f"{TORCH}/nn/modules/container.py"),
        frame("__iadd__", 413, f"{TORCH}/nn/modules/container.py"),
        frame("__init__", 364, f"{TORCH}/nn/modules/container.py"),
        frame("__init__", 30, "/workspace/train/model.py"),
        *LOADING[-2:],
    )
    program = Training()
    made = [program.alloc(size, layers) for size in program.SIZES]
    program.step()
    program.step()
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(address) for address in made} == {"parameter"}


def test_recorded_names_go_before_inference():
    program = Training()
    other = program.alloc(8 * MIB, BATCH)
    tensors = [
        {"device": 0, "address": other + 4096, "bytes": 4096, "category": "buffer"},
        {"device": 0, "address": other, "bytes": 8 * MIB, "category": "activation"},
        {"device": 1, "address": program.parameters[0], "bytes": 9, "category": "input"},
        {"address": "nowhere"}, 7, {"device": 0, "address": 1 << 90, "category": "input"},
    ]  # fmt: skip
    diagnosis = diagnose(program.history(oomscope={"tensors": tensors})[0])
    assert diagnosis.source == "mixed"
    assert diagnosis.category(other) == "activation"
    assert diagnosis.category(program.parameters[0]) == "parameter"


def test_states_that_are_made_as_memory_runs_out_are_states():
    program = Training()
    batch, activations = program.alloc(MIB, BATCH), program.forward()
    gradients = [program.alloc(size, ()) for size in reversed(program.SIZES)]
    program.free(*activations, batch)
    program.optimize()
    program.oom(64 * MIB, forward(31))
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(state) for state in program.states} == {"optimizer_state"}
    assert {diagnosis.category(gradient) for gradient in gradients} == {"gradient"}


@pytest.mark.parametrize(("goes_on", "category"), [(False, "activation"), (True, "temporary")])
def test_what_an_exception_frees_was_in_use_until_the_request_failed(goes_on: bool, category: str):
    """Unless the forward goes on: then the program could do without what it had asked for."""
    program = Training()
    made = program.forward()
    program.oom(64 * MIB, forward(32))
    if goes_on:
        program.alloc(MIB, forward(33))
    program.free(*made)
    program.alloc(MIB, BATCH)
    diagnosis = diagnose(program.history()[0])
    rows = np.isin(diagnosis.history.lifetimes.address, made)
    assert {CATEGORIES[one] for one in diagnosis.categories[rows].tolist()} == {category}


def test_a_replica_of_the_model_is_made_of_parameters():
    """`DataParallel` copies several parameters in one block to each further device; no library keeps such a buffer."""
    program = Training()
    replica = program.alloc(16 * MIB, (
        frame("broadcast_coalesced", 66, f"{TORCH}/nn/parallel/comm.py"),
        frame("forward", 23, f"{TORCH}/nn/parallel/_functions.py"),
        frame("_broadcast_coalesced_reshape", 95, f"{TORCH}/nn/parallel/replicate.py"),
        frame("replicate", 123, f"{TORCH}/nn/parallel/replicate.py"),
        *forward()[3:],
    ))  # fmt: skip
    gathered = program.alloc(16 * MIB, (frame("gather", 200, f"{TORCH}/nn/parallel/comm.py"), *forward()[3:]))
    program.oom(64 * MIB, forward(31))
    diagnosis = diagnose(program.history()[0])
    assert (diagnosis.category(replica), diagnosis.category(gathered)) == ("parameter", "workspace")


def test_gradients_that_are_dropped_before_the_next_forward_are_gradients():
    """Plain SGD allocates nothing between a backward and the next forward."""
    program = Training()
    for _ in range(2):
        activations = program.forward()
        gradients = [program.alloc(size, ()) for size in reversed(program.SIZES)]
        program.free(program.alloc(5 * MIB, ()), *activations)
        instant = len(program.entries) - 1
        program.free(*gradients)
    diagnosis = diagnose(program.history()[0])
    live = diagnosis.history.lifetimes.allocated_at(instant)
    gradient = live & (diagnosis.categories == CATEGORIES.index("gradient"))
    assert int(diagnosis.history.size[gradient].sum()) == sum(program.SIZES)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9), st.booleans()), min_size=1, max_size=40))
def test_any_order_of_events_is_categorized_whole(events):
    """Whatever the order of allocations, every lifetime has a category and a phase, and driver bytes sum up."""
    program = Program()
    stacks = [(), BATCH, forward(31), MOVING_BUFFER, STATE]
    for which, size, frees in events:
        program.alloc(size * MIB, stacks[which])
        if frees and len(program.live) > 1:
            program.free(next(iter(program.live)))
    diagnosis = diagnose(program.history()[0])
    assert len(diagnosis.categories) == len(diagnosis.phases) == len(diagnosis.history.lifetimes)
    assert int(diagnosis.categories.max(initial=0)) < len(CATEGORIES)
    if diagnosis.history.entries:
        assert sum(driver.bytes for driver in diagnosis.drivers()) == diagnosis.history.curves.at(diagnosis.at)[0]


CUBLAS = 8_519_680
"""Bytes of a workspace of cuBLAS before Hopper."""


@pytest.mark.parametrize(
    ("count", "freed", "category"),
    [(1, 0, "workspace"), (MOST_HANDLES, 0, "workspace"), (MOST_HANDLES + 1, 0, "unknown"), (1, 1, "unknown")],
)
def test_a_live_block_of_the_odd_size_is_a_workspace_outside_modules_too(count: int, freed: int, category: str):
    """Unless it is the size of a tensor of this program: then there are many, or they come and go."""
    program = Program()
    live = [program.alloc(CUBLAS, LOSS) for _ in range(count)]
    program.free(*[program.alloc(CUBLAS, LOSS) for _ in range(freed)])
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(block) for block in live} == {category}


def test_cpp_frames_tell_a_workspace_of_any_size():
    program = Training()
    stack = (frame("at::cuda::getNewWorkspace()", 0, "??"), *forward(31))
    made = [program.alloc(33_554_432, stack) for _ in range(MOST_HANDLES + 1)]
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(block) for block in made} == {"workspace"}


def of_a_line(line: int) -> tuple[dict[str, Any], ...]:
    return (frame("train", line, "/workspace/train/train.py"), *BATCH[1:])


@pytest.mark.parametrize(
    ("leaks", "keeps_graph", "category"),
    [(True, False, "unknown"), (True, True, "input"), (False, False, "input")],
)
def test_an_input_goes_with_its_step(leaks: bool, keeps_graph: bool, category: str):
    """Unless a graph that is kept may keep it; the batch of each step goes in any case."""
    program, made = Training(), []
    for _ in range(4):
        made.append(program.alloc(3 * MIB, of_a_line(12)))
        program.step(keep=1 if keeps_graph else 0)
        program.free(*([] if leaks else made[-1:]))
    diagnosis = diagnose(program.history()[0])
    rows = np.isin(diagnosis.history.lifetimes.address, made)
    assert {CATEGORIES[one] for one in diagnosis.categories[rows].tolist()} == {category}


@pytest.mark.parametrize(
    ("operator", "category"),
    [("at::_ops::_to_copy::call(at::Tensor const&)", "input"), ("at::_ops::cat::call(at::ITensorListRef)", "temporary"),
     ("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)", "temporary")],
)  # fmt: skip
def test_what_is_computed_between_two_forwards_is_no_input(operator: str, category: str):
    program = Program()
    program.alloc(2 * MIB, LOADING)
    made = []
    for _ in range(3):
        made.append(program.alloc(3 * MIB, (frame(operator, 0, "??"), *of_a_line(14))))
        activation = program.alloc(4 * MIB, forward(31))
        program.free(made[-1], activation)
    diagnosis = diagnose(program.history()[0])
    rows = np.isin(diagnosis.history.lifetimes.address, made)
    assert {CATEGORIES[one] for one in diagnosis.categories[rows].tolist()} == {category}


@pytest.mark.parametrize(("fails", "category"), [(False, "gradient"), (True, "temporary")])
def test_without_modules_the_gradients_of_leaves_are_as_large_as_they(fails: bool, category: str):
    """And what the backward frees as it goes was saved for it. Where it failed, what lives may only pass."""
    program = Program()
    for line in (35, 36):
        program.alloc(2 * MIB, of_a_line(line))
    saved = program.alloc(9 * MIB, of_a_line(42))
    begins = (frame("_make_grads", 220, f"{TORCH}/autograd/__init__.py"), *of_a_line(46))
    first = program.alloc(512, begins)
    gradients = [program.alloc(2 * MIB, ())]
    program.free(program.alloc(9 * MIB, ()), saved)
    gradients.append(program.alloc(2 * MIB, ()))
    program.free(first)
    if fails:
        program.oom(64 * MIB, ())
    diagnosis = diagnose(program.history()[0])
    assert {diagnosis.category(gradient) for gradient in gradients} == {category}
    rows = diagnosis.history.lifetimes.address == saved
    assert [CATEGORIES[one] for one in diagnosis.categories[rows]] == ["activation"]
