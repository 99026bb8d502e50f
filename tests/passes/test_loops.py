"""Loops and their passes, from the line numbers of stacks alone."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.loop_finder import LEAST_ON_ONE_LINE, pass_starts
from oomscope.analysis.passes.loops import Loops
from tests.analysis.asking import diagnose
from tests.analysis.programs import MIB
from tests.builders import frame
from tests.passes.scripts import BACKWARD_CALL, CALLED, IN_THREAD, LINEAR, MAKING, OPTIMIZER_CALL, Script
from tests.shared import needs_shared, shared_snapshot


def loops(script: Script) -> Loops:
    return diagnose(script.snapshot()).study.loops


def passes(script: Script, *, certain: bool = True) -> list[tuple[str, int, list[int]]]:
    """Function and line of each loop, with the passes of each of its runs."""
    found = loops(script)
    kept: dict[int, tuple[str, int, list[int]]] = {}
    for run in found.runs:
        if run.certain == certain:
            place = found.location(run)
            kept.setdefault(run.loop, (place.function, place.line, []))[2].append(len(run.starts))
    return list(kept.values())


def train_step(script: Script, *, layers: int = 3) -> None:
    batch = script.at(31)
    kept = [script.layer(32, 10 + layer) for layer in range(layers)]
    gradient = script.at(34, 1, *BACKWARD_CALL)
    script.free(script.at(35, 1, *OPTIMIZER_CALL), gradient, batch, *kept)


def test_a_step_back_to_an_earlier_line_begins_a_pass():
    script = Script()
    with script.call(50, "train"):
        for _ in range(5):
            train_step(script)
    assert passes(script) == [("train", 31, [5])]


def test_code_that_is_never_come_back_to_is_no_loop():
    script = Script()
    with script.call(50, "train"):
        train_step(script)
    assert passes(script) == []


def test_layers_of_one_forward_are_no_passes():
    script = Script()
    script.layer(32, 10)
    for _ in range(24):
        for line in (20, 21, 22):
            script.layer(32, line)
    script.layer(32, 30)
    assert passes(script) == []
    assert passes(script, certain=False) == []


def test_layers_that_are_all_of_a_forward_leave_the_loop_around_it_uncertain():
    script = Script()
    for _ in range(24):
        for line in (20, 21):
            script.layer(32, line)
    assert passes(script) == []
    assert passes(script, certain=False) == [("<module>", 32, [24])]


def test_a_container_of_equal_layers_is_no_loop_within_a_step():
    script = Script()
    sequential = frame("forward", 250, "/venv/lib/python3.12/site-packages/torch/nn/modules/container.py")
    with script.call(50, "train"):
        for _ in range(4):
            batch = script.at(31)
            script.free(batch, *[script.at(32, 1, LINEAR, *CALLED, sequential, *CALLED) for _ in range(12)])
    assert passes(script) == [("train", 31, [4])]
    assert passes(script, certain=False) == []


def test_nested_loops_nest_and_their_runs_are_one_loop():
    script = Script()
    for _ in range(3):
        with script.call(50, "train"):
            for _ in range(4):
                script.free(script.at(31), script.at(32))
        with script.call(51, "validate"):
            for _ in range(2):
                script.free(script.at(41), script.at(42))
    assert passes(script) == [("<module>", 50, [3]), ("train", 31, [4, 4, 4]), ("validate", 41, [2, 2, 2])]
    found = loops(script)
    inner = [run for run in found.runs if found.location(run).function == "validate"]
    assert all(found.location(found.runs[run.parent]).function == "<module>" for run in inner)


def test_a_loop_within_a_loop_of_the_same_function_is_another():
    script = Script()
    for _ in range(3):
        for _ in range(4):
            script.free(script.at(31), script.at(32))
        script.free(script.at(35))
    assert passes(script) == [("<module>", 31, [3]), ("<module>", 31, [4, 4, 4])]


def test_a_call_on_several_lines_is_no_loop():
    script = Script()
    for line in (11, 12, 13, 10, 14):
        script.at(line)
    assert passes(script) == []


def test_an_expression_on_several_lines_that_comes_back_to_its_first_is_no_loop():
    script = Script()
    for line in (10, 11, 10, 15):
        script.at(line)
    assert passes(script) == []


def test_passes_with_a_call_on_several_lines_are_counted_once():
    script = Script()
    for _ in range(6):
        for line in (11, 12, 10, 14):
            script.at(line)
    assert passes(script) == [("<module>", 10, [6])]
    assert loops(script).runs[0].starts.tolist() == [0, 4, 8, 12, 16, 20]


def test_a_line_that_runs_only_now_and_then_parts_no_pass():
    script = Script()
    for number in range(9):
        script.at(31)
        script.at(32)
        if number == 4:
            script.at(33)
        script.at(34)
    assert passes(script) == [("<module>", 31, [9])]


def test_the_exit_of_a_with_block_goes_back_to_its_line_and_begins_no_pass():
    script = Script()
    for line in (10, 11, 12):
        script.at(line)
    script.at(10, 1, frame("__exit__", 90, "/workspace/train/util.py"))
    script.at(13)
    assert passes(script) == []


@pytest.mark.parametrize(("count", "found"), [(LEAST_ON_ONE_LINE - 1, []), (LEAST_ON_ONE_LINE, [LEAST_ON_ONE_LINE])])
def test_a_comprehension_is_a_loop_on_one_line(count, found):
    script = Script()
    for _ in range(count):
        script.at(12)
    assert [runs for _, _, runs in passes(script)] == [found] * bool(found)


def test_calls_on_one_line_in_turn_are_a_loop_of_that_line():
    script = Script()
    for _ in range(5):
        for function in ("load", "work"):
            with script.call(12, function):
                script.at(20)
    assert passes(script) == [("<module>", 12, [5])]


def test_a_generator_is_a_frame_of_its_own():
    script = Script()
    for _ in range(5):
        with script.call(30, "batches"):
            script.at(7)
        script.layer(31, 10)
    assert passes(script) == [("<module>", 30, [5])]


def test_a_function_that_calls_itself_makes_no_loop_of_its_depths():
    script = Script()
    with script.call(50, "walk"):
        script.at(5)
        with script.call(6, "walk"):
            script.at(5)
            with script.call(6, "walk"):
                script.at(5)
    assert passes(script) == []


def test_loops_over_parameters_are_none_of_the_script():
    script = Script()
    for _ in range(40):
        script.at(12, 1, *MAKING)
    for _ in range(20):
        script.at(35, 1, *OPTIMIZER_CALL)
        script.at(35, 1, frame("_init_group", 178, OPTIMIZER_CALL[0]["filename"]), *OPTIMIZER_CALL[1:])
    own = frame("step", 71, "/workspace/train/optimizer.py"), frame("step", 80, "/workspace/train/optimizer.py")
    for _ in range(20):
        for line in own:
            script.at(35, 1, line, OPTIMIZER_CALL[2])
    assert passes(script) == []


def test_a_model_that_is_made_anew_begins_a_pass_of_the_loop_around_its_training():
    script = Script()
    for trial in range(3):
        with script.call(10, "__init__"):
            for _ in range(4):
                script.at(3, 1, *MAKING)
        if trial < 2:
            for _ in range(3):
                script.free(script.layer(12, 7), script.at(13, 1, *OPTIMIZER_CALL))
    script.fails(10, 1, *MAKING)
    assert passes(script) == [("<module>", 10, [3]), ("<module>", 12, [3, 3])]
    assert len(loops(script).running(len(script.entries) - 1)) == 1


def test_recomputation_in_a_backward_is_no_loop():
    script = Script()
    for _ in range(12):
        for line in (20, 21):
            block = frame("forward", line, "/workspace/train/model.py")
            script.at(34, 1, LINEAR, *CALLED, block, *CALLED, *BACKWARD_CALL)
    assert passes(script) == []
    assert passes(script, certain=False) == []


def test_threads_are_followed_apart_from_the_main_thread():
    script = Script()
    for _ in range(4):
        script.free(script.at(31), script.at(32))
        calls, script.calls, script.inside, script.outside = script.calls, [], "serve", IN_THREAD
        script.free(script.at(5), script.at(6))
        script.calls, script.inside, script.outside = calls, "<module>", ()
    assert passes(script) == [("<module>", 31, [4]), ("serve", 5, [4])]


def test_a_trace_that_begins_in_the_midst_of_a_pass_still_has_passes():
    script = Script()
    for line in (32, 33, 34, 31, 32, 33, 34, 31, 32, 33, 34):
        script.at(line)
    del script.entries[0]
    run = loops(script).runs[0]
    assert run.starts.tolist() == [0, 2, 6]


def test_a_second_pass_that_has_just_begun_is_told_from_an_expression():
    assert pass_starts([(0, 10), (0, 11), (0, 12), (0, 10)], [1, 2, 3, 1]) == [0, 3]
    assert pass_starts([(0, 10), (0, 11), (0, 10)], [1, 2, 1]) == []
    assert pass_starts([(0, 10), (0, 11), (0, 10), (0, 11)], [1, 2, 1, 2]) == [0, 2]
    assert pass_starts([(0, 10), (0, 11), (0, 12), (0, 10)], [1, 2, 3, 4]) == []


def test_passes_in_progress_and_finished_at_an_entry():
    script = Script()
    for _ in range(3):
        script.free(script.at(31, 2), script.at(32, 2))
    script.fails(31, 9)
    found = loops(script)
    run = found.runs[0]
    last = len(script.entries) - 1
    assert [run.completed(entry) for entry in (0, int(run.starts[1]) - 1, int(run.starts[1]), last)] == [0, 0, 1, 3]
    assert found.running(last) == (0,)
    assert script.live == {}
    assert MIB == 1 << 20


@needs_shared
@pytest.mark.parametrize(
    ("name", "line", "count"),
    [
        ("train_ok", 60, 4), ("ring_wrapped", 60, 2), ("late_start", 60, 3), ("oom_leak_total_loss", 205, 33),
        ("compiled", 311, 3), ("whatif.oom_varlen_training.default", 60, 60),
    ],
)  # fmt: skip
def test_the_steps_of_real_programs_are_passes(name, line, count):
    snapshot = shared_snapshot(name)
    found = diagnose(snapshot, snapshot.devices[0].index).study.loops
    (run,) = (run for run in found.runs if run.certain)
    assert (found.location(run).line, len(run.starts)) == (line, count)
