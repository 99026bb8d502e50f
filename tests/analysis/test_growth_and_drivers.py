"""What grows, what the live bytes are, and the model's bill."""

from __future__ import annotations

import pytest

from oomscope.analysis.labels.model_cost import make_bill
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import BACKWARD, BATCH, CALL, LOADING, LOSS, MAIN, MIB, TORCH, Program, Training, forward
from tests.builders import frame
from tests.shared import needs_shared, shared_snapshot

STEADY = ["train_ok", "late_start", "ring_wrapped", "oom_activations", "oom_optimizer_step", "compiled"]
FIRST_DRIVERS = {
    "oom_activations": "activations", "oom_activations.expandable": "activations",
    "oom_optimizer_step": "optimizer_state", "oom_leak_total_loss": "retained_graph",
}  # fmt: skip


def real(name: str) -> Diagnosis:
    snapshot = shared_snapshot(name)
    return diagnose(snapshot, snapshot.devices[0].index)


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
    (growth,) = diagnose(program.history()[0]).growth()
    assert (growth.kind, growth.generations, growth.bytes_per_step) == ("generations", 6, 4 * MIB)
    assert growth.spared_bytes == 5 * 4 * MIB
    assert growth.site is not None
    assert growth.site.line == 31


def test_a_list_of_results_is_told_from_a_kept_graph():
    results, graph = Training(), Training()
    for _ in range(6):
        results.step(keep=1)
        graph.step(keep=4)
    assert "accumulated_tensors" in {driver.slug for driver in diagnose(results.history()[0]).drivers()}
    assert diagnose(graph.history()[0]).drivers()[0].slug == "retained_graph"


def test_the_last_few_steps_in_a_window_are_no_growth():
    program, window = Training(), []
    for _ in range(14):
        window.append(program.step(keep=1))
        if len(window) > 4:
            program.free(*window.pop(0))
    assert diagnose(program.history()[0]).growth() == ()


def test_what_the_first_steps_leave_is_no_growth():
    program = Training()
    for number in range(12):
        program.step(keep=1 if number < 3 else 0)
    assert diagnose(program.history()[0]).growth() == ()


def test_larger_batches_are_no_growth():
    program = Training()
    for scale in range(1, 10):
        program.step(scale=scale)
    program.alloc(MIB, BATCH)
    program.forward(scale=10)
    assert diagnose(program.history()[0]).growth() == ()


def test_a_list_filled_after_training_is_growth():
    program = Training()
    for _ in range(3):
        program.step()
    for _ in range(40):
        batch, made = program.alloc(MIB, BATCH), program.forward()
        program.free(batch, *made[1:])
    (growth,) = diagnose(program.history()[0]).growth()
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
    diagnosis = diagnose(program.history()[0])
    (growth,) = diagnosis.growth()
    assert (growth.kind, growth.live_bytes, growth.spared_bytes) == ("reallocation", 3 * 37 * MIB, 3 * 29 * MIB)
    assert diagnosis.drivers()[0].slug == "kv_cache"


def test_a_cache_joined_on_the_line_that_makes_the_new_piece_is_growth():
    program, old = Program(), {}
    program.alloc(6 * MIB, LOADING)
    joining = (frame("generate", 7, "/workspace/serve.py"), MAIN)
    for token in range(30):
        for layer in range(4):
            piece = program.alloc((1 + (token + layer) % 2) * MIB, joining)
            if layer in old:
                joined = program.alloc((8 + 2 * token) * MIB, joining)
                program.free(old[layer])
                old[layer] = joined
            else:
                old[layer] = program.alloc(8 * MIB, joining)
            program.free(piece)
    diagnosis = diagnose(program.history()[0])
    (growth,) = diagnosis.growth()
    assert (growth.kind, growth.live_bytes) == ("reallocation", 4 * 66 * MIB)
    assert diagnosis.drivers()[0].slug == "kv_cache"


def test_a_cache_that_has_long_stopped_growing_is_no_growth():
    program, old = Program(), 0
    for token in range(30):
        new = program.alloc((8 + token) * MIB, forward(60))
        if old:
            program.free(old)
        old = new
    for number in range(40):
        program.alloc(MIB, (frame(f"work_{number}", number, "/workspace/serve.py"), MAIN))
    assert diagnose(program.history()[0]).growth() == ()


def fill(program: Program, rounds: int) -> None:
    """Keep one block of two from each round."""
    for _ in range(rounds):
        program.alloc(4 * MIB, (frame("fill", 5, "/workspace/serve.py"), MAIN))
        program.free(program.alloc(3 * MIB, (frame("fill", 6, "/workspace/serve.py"), MAIN)))


def test_a_list_is_growth_while_its_loop_runs_and_none_once_it_has_ended():
    running, ended = Program(), Program()
    for program in (running, ended):
        fill(program, 30)
    running.oom(4 * MIB, (frame("fill", 5, "/workspace/serve.py"), MAIN))
    for number in range(3):
        ended.alloc(40 * MIB, (frame("serve", 10 + number, "/workspace/serve.py"), MAIN))
    ended.oom(90 * MIB, (frame("serve", 20, "/workspace/serve.py"), MAIN))
    assert [one.generations for one in diagnose(running.history()[0]).growth()] == [30]
    assert diagnose(ended.history()[0]).growth() == ()


def test_growth_inside_one_step_is_marked_as_such():
    steps, rounds = Training(), Training()
    for _ in range(6):
        steps.step(keep=1)
    for _ in range(2):
        rounds.step()
    for _ in range(40):
        rounds.free(rounds.alloc(MIB, BATCH), *rounds.forward()[1:])
    assert [one.within_step for one in diagnose(steps.history()[0]).growth()] == [False]
    assert [one.within_step for one in diagnose(rounds.history()[0]).growth()] == [True]


def test_generations_from_before_a_wrapped_trace_count():
    program = Training()
    for number in range(10):
        if number == 4:
            gone, before = len(program.entries), program.time
        program.step(keep=1)
    program.entries = program.entries[gone:]
    program.annotations = [mark for mark in program.annotations if mark["time_us"] >= before]
    (growth,) = diagnose(program.history()[0]).growth()
    assert (growth.generations, growth.live_bytes, growth.spared_bytes) == (10, 40 * MIB, 36 * MIB)


def test_growth_over_time_needs_no_steps_and_no_loop():
    """A script that calls the same function again and again, on a new line each time."""
    program = Program()
    for number in range(40):
        calling = frame("<module>", 100 + 2 * number, "/workspace/serve.py")
        program.alloc(2 * MIB, (frame("keep", 5, "/workspace/serve.py"), calling))
        program.free(program.alloc(3 * MIB, (frame(f"work_{number}", number, "/workspace/serve.py"), calling)))
    (growth,) = diagnose(program.history()[0]).growth()
    assert (growth.kind, growth.loop, growth.blocks) == ("time", None, 40)


def test_filling_a_list_in_one_go_is_no_growth():
    program = Program()
    for _ in range(100):
        program.alloc(2 * MIB, (frame("fill", 5, "/workspace/serve.py"), MAIN))
    assert diagnose(program.history()[0]).growth() == ()


def test_a_copy_of_the_model_is_a_driver_of_its_own():
    copying = (
        frame("__deepcopy__", 68, f"{TORCH}/nn/parameter.py"), frame("deepcopy", 143, "/usr/lib/python3.12/copy.py"),
        frame("make_average", 70, "/workspace/train/train.py"), MAIN,
    )  # fmt: skip
    program = Program()
    for stack in (LOADING, copying):
        for size in (9, 6, 3, 2):
            program.alloc(size * MIB, stack)
    found = {driver.slug: driver.bytes for driver in diagnose(program.history()[0]).drivers()}
    assert found == {"parameters": 20 * MIB, "duplicate_model": 20 * MIB}


def cloned(*, by_optimizer: bool) -> dict[str, int]:
    program = Training(annotated=by_optimizer)
    cloning = (frame("average", 72, "/workspace/train/train.py"), MAIN)
    for size in (5, 4, 2, 1):
        program.alloc(size * MIB, LOADING)
    for size in (*(mine // MIB for mine in program.SIZES), 5, 4, 2, 1):
        program.alloc(size * MIB, cloning)
    activations = program.forward()
    gradients = [program.alloc(size, BACKWARD) for size in program.SIZES]
    program.free(*activations)
    if by_optimizer:
        program.optimize()
    program.free(*gradients)
    program.forward()
    return {driver.slug: driver.bytes for driver in diagnose(program.history()[0]).drivers()}


def test_a_cloned_state_dict_is_a_copy_of_the_model():
    assert cloned(by_optimizer=True)["duplicate_model"] == 21 * MIB


def test_tensors_like_the_parameters_may_be_states_of_an_optimizer_written_by_hand():
    assert "duplicate_model" not in cloned(by_optimizer=False)


def test_the_gradient_of_logits_belongs_to_them():
    loss = (frame("cross_entropy", 3504, f"{TORCH}/nn/functional.py"), *LOSS)
    program = Training()
    program.step()
    program.forward()
    program.alloc(96 * MIB, loss)
    program.alloc(96 * MIB, BACKWARD)
    first = diagnose(program.history()[0]).drivers()[0]
    assert (first.slug, first.bytes) == ("logits", 192 * MIB)
    assert first.site is not None
    assert first.site.function == "loss"


def in_block(line: int, *inner: tuple[str, int, str]) -> tuple[dict, ...]:
    """A stack inside a block's forward: in one of its linear layers, or in a function that it calls."""
    inside = [frame(*one) for one in inner] or [frame("forward", 134, f"{TORCH}/nn/modules/linear.py"), CALL]
    return (*inside, frame("forward", line, "/workspace/train/model.py"), CALL, MAIN)


@pytest.mark.parametrize(("operator", "slug"), [("_softmax", "attention_scores"), ("relu", "activations")])
def test_scores_made_in_a_function_that_the_forward_calls_are_told_too(operator: str, slug: str):
    made_by = (f"at::_ops::{operator}::call(at::Tensor const&)", 0, "??")
    program = Training()
    program.alloc(8 * MIB, in_block(50))
    program.alloc(64 * MIB, in_block(51, made_by, ("mix", 22, "/workspace/train/model.py")))
    assert diagnose(program.history()[0]).drivers()[0].slug == slug


@pytest.mark.parametrize(("before", "slug"), [(4, "attention_scores"), (16, "activations")])
def test_what_grows_with_the_square_of_the_tokens_is_scores(before, slug):
    """Four times the tokens: sixteen times the scores, but four times anything else."""
    mixing = in_block(51, ("mix", 22, "/workspace/train/model.py"))
    program = Training()
    program.free(program.alloc(10 * MIB, in_block(50)), program.alloc(before * MIB, mixing))
    program.alloc(40 * MIB, in_block(50))
    program.alloc(64 * MIB, mixing)
    first = diagnose(program.history()[0]).drivers()[0]
    assert (first.slug, first.site and first.site.function) == (slug, "mix")


def test_scores_of_an_attention_are_told_from_other_activations():
    attending = frame("attention", 22, "/workspace/train/model.py")
    linear = (frame("forward", 134, f"{TORCH}/nn/modules/linear.py"), CALL)
    program = Training()
    program.alloc(4 * MIB, (*linear, attending, *forward()[2:]))
    program.alloc(64 * MIB, (attending, *forward()[2:]))
    assert diagnose(program.history()[0]).drivers()[0].slug == "attention_scores"


def test_the_bill_of_adam_in_full_precision():
    program = Training()
    program.step()
    program.alloc(MIB, BATCH)
    snapshot, history = program.history()
    bill = make_bill(diagnose(snapshot).study, history.entries - 1)
    size = sum(program.SIZES)
    assert bill is not None
    assert bill.parameters == size // 4
    assert bill.rows[0] == ("parameters", size, size)
    assert bill.rows[2] == ("optimizer_state", 2 * size, 2 * size)


def test_without_parameters_there_is_no_bill():
    program = Program()
    program.alloc(MIB, BATCH)
    assert make_bill(diagnose(program.history()[0]).study, 0) is None
