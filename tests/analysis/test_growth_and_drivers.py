"""What grows, what the live bytes are, and the model's bill."""

from __future__ import annotations

import pytest

from oomscope.analysis.bill import make_bill
from oomscope.history import device_history, recorded_config
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import BATCH, CALL, LOADING, MAIN, MIB, TORCH, Program, Training, forward
from tests.builders import frame
from tests.shared import needs_shared, shared_snapshot

STEADY = ["train_ok", "late_start", "ring_wrapped", "oom_activations", "oom_optimizer_step", "compiled"]
FIRST_DRIVERS = {
    "oom_activations": "activations", "oom_activations.expandable": "activations",
    "oom_optimizer_step": "optimizer_state", "oom_leak_total_loss": "retained_graph",
}  # fmt: skip


def real(name: str) -> Diagnosis:
    snapshot = shared_snapshot(name)
    return diagnose(snapshot, device_history(snapshot.devices[0], recorded_config(snapshot)))


@needs_shared
@pytest.mark.parametrize("name", [*STEADY, "oom_fragmentation", "oom_cuda_graphs", "ddp.rank0"])
def test_programs_that_do_not_leak_show_no_growth(name):
    assert real(name).growth() == ()


@needs_shared
@pytest.mark.parametrize(("name", "slug"), FIRST_DRIVERS.items())
def test_the_driver_of_real_shortages_comes_first_or_second(name, slug):
    drivers = real(name).drivers()
    assert slug in [driver.slug for driver in drivers[:2]]


@needs_shared
def test_the_leak_of_a_kept_graph_is_found():
    growth = real("oom_leak_total_loss").growth()
    assert growth[0].kind == "generations"
    assert growth[0].generations > 30
    assert growth[0].fit > 0.99
    assert sum(one.spared_bytes for one in growth) > 0.9 * sum(one.live_bytes for one in growth)


def test_one_block_a_step_that_stays_is_growth():
    program = Training()
    for _ in range(6):
        program.step(keep=1)
    (growth,) = diagnose(*program.history()).growth()
    assert (growth.kind, growth.generations, growth.bytes_per_step) == ("generations", 6, 4 * MIB)
    assert growth.spared_bytes == 5 * 4 * MIB
    assert growth.site is not None
    assert growth.site.line == 31


def test_a_list_of_results_is_told_from_a_kept_graph():
    results, graph = Training(), Training()
    for _ in range(6):
        results.step(keep=1)
        graph.step(keep=4)
    assert "accumulated_tensors" in {driver.slug for driver in diagnose(*results.history()).drivers()}
    assert diagnose(*graph.history()).drivers()[0].slug == "retained_graph"


def test_the_last_few_steps_in_a_window_are_no_growth():
    program, window = Training(), []
    for _ in range(14):
        window.append(program.step(keep=1))
        if len(window) > 4:
            program.free(*window.pop(0))
    assert diagnose(*program.history()).growth() == ()


def test_what_the_first_steps_leave_is_no_growth():
    program = Training()
    for number in range(12):
        program.step(keep=1 if number < 3 else 0)
    assert diagnose(*program.history()).growth() == ()


def test_larger_batches_are_no_growth():
    program = Training()
    for scale in range(1, 10):
        program.step(scale=scale)
    program.alloc(MIB, BATCH)
    program.forward(scale=10)
    assert diagnose(*program.history()).growth() == ()


def test_a_list_filled_after_training_is_growth():
    program = Training()
    for _ in range(3):
        program.step()
    for _ in range(40):
        batch, made = program.alloc(MIB, BATCH), program.forward()
        program.free(batch, *made[1:])
    (growth,) = diagnose(*program.history()).growth()
    assert growth.generations >= 38


def test_a_cache_that_is_joined_to_is_growth_by_reallocation():
    program, old = Program(), {}
    for parameter in (6, 3, 2, 1):
        program.alloc(parameter * MIB, LOADING)
    for token in range(30):
        for layer in range(3):
            new = program.alloc((8 + token) * MIB, forward(60))
            if layer in old:
                program.free(old[layer])
            old[layer] = new
        program.free(program.alloc(2 * MIB, forward(70)))
    diagnosis = diagnose(*program.history())
    (growth,) = diagnosis.growth()
    assert (growth.kind, growth.live_bytes, growth.spared_bytes) == ("reallocation", 3 * 37 * MIB, 3 * 29 * MIB)
    assert diagnosis.drivers()[0].slug == "kv_cache"


def test_growth_over_time_needs_no_steps():
    program, keeping = Program(), (frame("keep", 5, "/workspace/serve.py"), MAIN)
    for number in range(40):
        program.alloc(2 * MIB, keeping)
        program.free(program.alloc(3 * MIB, (frame(f"work_{number}", number, "/workspace/serve.py"), MAIN)))
    (growth,) = diagnose(*program.history()).growth()
    assert growth.kind == "time"


def test_filling_a_list_in_one_go_is_no_growth():
    program = Program()
    for _ in range(100):
        program.alloc(2 * MIB, (frame("fill", 5, "/workspace/serve.py"), MAIN))
    assert diagnose(*program.history()).growth() == ()


def test_a_copy_of_the_model_is_a_driver_of_its_own():
    copying = (
        frame("__deepcopy__", 68, f"{TORCH}/nn/parameter.py"), frame("deepcopy", 143, "/usr/lib/python3.12/copy.py"),
        frame("make_average", 70, "/workspace/train/train.py"), MAIN,
    )  # fmt: skip
    program = Program()
    for stack in (LOADING, copying):
        for size in (9, 6, 3, 2):
            program.alloc(size * MIB, stack)
    found = {driver.slug: driver.bytes for driver in diagnose(*program.history()).drivers()}
    assert found == {"parameters": 20 * MIB, "duplicate_model": 20 * MIB}


def test_scores_of_an_attention_are_told_from_other_activations():
    attending = frame("attention", 22, "/workspace/train/model.py")
    linear = (frame("forward", 134, f"{TORCH}/nn/modules/linear.py"), CALL)
    program = Training()
    program.alloc(4 * MIB, (*linear, attending, *forward()[2:]))
    program.alloc(64 * MIB, (attending, *forward()[2:]))
    assert diagnose(*program.history()).drivers()[0].slug == "attention_scores"


def test_the_bill_of_adam_in_full_precision():
    program = Training()
    program.step()
    program.alloc(MIB, BATCH)
    snapshot, history = program.history()
    bill = make_bill(snapshot, history, diagnose(snapshot, history).categories, history.entries - 1)
    size = sum(program.SIZES)
    assert bill is not None
    assert bill.parameters == size // 4
    assert bill.rows[0] == ("parameters", size, size)
    assert bill.rows[2] == ("optimizer state", 2 * size, 2 * size)


def test_without_parameters_there_is_no_bill():
    program = Program()
    program.alloc(MIB, BATCH)
    snapshot, history = program.history()
    assert make_bill(snapshot, history, diagnose(snapshot, history).categories, 0) is None
