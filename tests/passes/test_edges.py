"""Rules of growth, of what a run gathers and of steps, each at its edge."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import candidates, generations, growth_over_time, loop_that_matters, steps
from oomscope.analysis.passes.records import Growth
from tests.analysis.asking import diagnose
from tests.analysis.programs import MIB, TORCH, Training
from tests.builders import frame
from tests.passes.scripts import BACKWARD_CALL, MAKING, Script


def growth(script: Script) -> tuple[Growth, ...]:
    return diagnose(script.snapshot()).growth()


def keeping(mib: float, *, passes: int = 10, beside: float = 0) -> tuple[Growth, ...]:
    """Passes of which each keeps so much, with a model beside them."""
    script = Script()
    if beside:
        script.at(3, beside, *MAKING)
    with script.call(50, "predict"):
        for _ in range(passes):
            script.layer(21, 10, mib)
            script.free(script.at(22, 2))
        script.fails(21, 500)
    return growth(script)


def test_the_least_bytes_and_the_least_share():
    assert candidates.LEAST_BYTES == MIB
    assert keeping(0.09) == ()
    assert len(keeping(0.11)) == 1
    assert candidates.LEAST_SHARE == 0.005
    assert keeping(2, beside=4100) == ()
    assert len(keeping(2, beside=3900)) == 1


@pytest.mark.parametrize(("now", "found"), [(8, 1), (30, 0)])
def test_finished_passes_must_have_left_a_good_part_of_the_least(now, found):
    """At the edge of `LEAST_LEFT`: half of a mebibyte; the pass in progress may have made the rest."""
    assert generations.LEAST_LEFT == 0.5
    script = Script()
    with script.call(50, "predict"):
        for _ in range(10):
            script.layer(21, 10, 0.06 if now == 8 else 0.04)
            script.free(script.at(22, 2))
        script.layer(21, 10, now)
        script.fails(22, 500)
    assert len(growth(script)) == found


def gathered(held: int, left: float = 0.0) -> tuple[Growth, ...]:
    """Runs of ten passes, of which `held` hold something to the end, and the part `left` stays; then a longer one."""
    script = Script()
    script.at(3, 2, *MAKING)
    with script.call(50, "fit"):
        for _ in range(3):
            script.at(19, 0.01)
            kept = []
            for number in range(10):
                made = script.layer(22, 10, 8)
                if number >= 10 - held:
                    kept += [made]
                else:
                    script.free(made)
                script.free(script.at(23, 2))
            rest = script.layer(24, 12, 8 * held * left / (1 - left)) if left else 0
            del rest
            script.free(script.at(25, 1, *BACKWARD_CALL), *kept)
        script.at(19, 0.01)
        for _ in range(30):
            script.layer(22, 10, 8)
            script.free(script.at(23, 2))
        script.fails(22, 500)
    return growth(script)


def test_a_run_gathers_if_most_of_its_passes_hold_something_to_its_end():
    """At the edge of `GATHERS`: five of ten."""
    assert loop_that_matters.GATHERS == 0.5
    assert gathered(5) == ()
    assert len(gathered(4)) == 1


def leaving(left: float) -> bool:
    """Whether a run gathers and gives back of which the part `left` stays for good."""
    script = Script()
    with script.call(50, "fit"):
        for _ in range(3):
            script.at(19, 0.01)
            kept = [script.layer(22, 10, 8 * (1 - left)) for _ in range(10) for _ in (script.free(script.at(23, 2)),)]
            script.layer(22, 11, 80 * left)
            script.free(script.at(23, 2))
            script.free(script.at(25, 1, *BACKWARD_CALL), *kept)
    study = diagnose(script.snapshot()).study
    inner = [run for run in study.loops.runs if run.parent >= 0]
    return loop_that_matters.gathers_and_gives_back(study, inner[1])


def test_a_run_gives_back_if_next_to_nothing_of_it_stays():
    assert loop_that_matters.GIVEN_BACK == 0.02
    assert leaving(0.019)
    assert not leaving(0.021)


@pytest.mark.parametrize(("cells", "found"), [(80, 1), (100, 0)])
def test_a_site_that_earlier_runs_left_something_of_did_not_give_back(cells, found):
    """At the edge of `MOST_FROM_BEFORE`: the first run left ten blocks, a tenth of all that are alive, or more."""
    assert generations.MOST_FROM_BEFORE == 0.1
    script = Script()
    with script.call(50, "fit"):
        for count in (10, cells):
            script.at(19, 0.01)
            kept = []
            for _ in range(count):
                kept.append(script.layer(22, 10, 16))
                script.at(23, 0.2)
            if count == 10:
                script.free(script.at(25, 1, *BACKWARD_CALL), *kept)
        script.fails(22, 500)
    assert [row.site.line for row in growth(script) if row.site] == [23] * found


def over_time(blocks: int, *, idle: int = 0, interleaved: float = 1.0, after: int = 0) -> tuple[Growth, ...]:
    """A script that keeps a block on a new line each time, and lets others go between some of them."""
    script = Script()
    for number in range(blocks):
        with script.call(1000 + 3 * number, "keep"):
            script.at(5, 2)
        if number < interleaved * (blocks - 1):
            script.free(script.at(1001 + 3 * number, 3))
    for number in range(idle + after):
        script.free(script.at(9000 + number, 3))
    return growth(script)


def test_growth_over_time_at_its_edges():
    assert growth_over_time.LEAST_BLOCKS == 16
    assert over_time(15) == ()
    (row,) = over_time(16)
    assert (row.kind, row.blocks) == ("time", 16)
    assert growth_over_time.LEAST_INTERLEAVED == 0.7
    assert over_time(31, interleaved=0.66) == ()
    assert len(over_time(31, interleaved=0.72)) == 1
    assert growth_over_time.MOST_PAUSE == 3.0
    assert len(over_time(31, after=2)) == 1
    assert over_time(31, after=5) == ()


def test_what_came_at_the_start_of_a_trace_and_stayed_was_set_up():
    """At the edge of `LEAST_DURATION`: a site that began late has gone on for less than half of the trace."""
    assert growth_over_time.LEAST_DURATION == 0.5
    for before, found in ((25, 1), (45, 0)):
        script = Script()
        for number in range(before):
            script.free(script.at(500 + number, 3))
        for number in range(31):
            with script.call(1000 + 3 * number, "keep"):
                script.at(5, 2)
            script.free(script.at(1001 + 3 * number, 3))
        assert len(growth(script)) == found


@pytest.mark.parametrize(("power", "found"), [(1.0, 1), (4.0, 0)])
def test_growth_over_time_is_a_line(power, found):
    assert growth_over_time.LEAST_FIT == 0.95
    script = Script()
    for number in range(31):
        with script.call(1000 + 3 * number, "keep"):
            script.at(5, 1 + 99 * (number / 30) ** power * (power > 1))
        script.free(script.at(1001 + 3 * number, 3))
    assert len(growth(script)) == found


def epochs(count: int) -> int:
    script = Script()
    for _ in range(count):
        script.free(script.at(40))
        with script.call(50, "train"):
            for _ in range(6):
                script.free(script.at(31), script.at(32))
    return diagnose(script.snapshot()).steps.count


def test_two_passes_of_an_outer_loop_are_taken_for_epochs():
    assert steps.LEAST_PASSES == 3
    assert epochs(2) == 12
    assert epochs(3) == 3


@pytest.mark.parametrize(("others", "count"), [(12, 6), (13, 0)])
def test_a_loop_that_most_of_the_script_does_not_run_in_gives_no_steps(others, count):
    """At the edge of `LEAST_COVERED`: half of the allocations."""
    assert steps.LEAST_COVERED == 0.5
    script = Script()
    for _ in range(6):
        script.free(script.at(31), script.at(32))
    for number in range(others):
        script.at(100 + number)
    assert diagnose(script.snapshot()).steps.count == count


def taking_turns(optimizers: int) -> int:
    program = Training()
    for _ in range(3):
        for number in range(optimizers):
            line = 100 + 20 * number
            program.free(*[program.alloc(4 * MIB, program_forward(line + layer)) for layer in range(3)])
            program.free(program.alloc(6 * MIB, ()))
            program.optimize()
    return diagnose(program.history()[0]).steps.count


def program_forward(line: int) -> tuple[dict, ...]:
    call = frame("_call_impl", 1790, f"{TORCH}/nn/modules/module.py")
    return (frame("forward", line, "/workspace/train/model.py"), call, frame("train", 45), frame("<module>", 9))


def test_the_most_optimizers_that_take_turns():
    assert steps.MOST_OPTIMIZERS == 4
    assert taking_turns(4) == 3
    assert taking_turns(5) == 15


@pytest.mark.parametrize(("second", "count"), [(4, 5), (3, 8)])
def test_optimizers_of_one_round_step_equally_often_but_for_the_round_in_progress(second, count):
    """At the edge of `UNFINISHED`: the later one decides, unless it is behind by two."""
    assert steps.UNFINISHED == 1
    program = Training(annotated=False)
    for number in range(5):
        program.free(*program.forward(), program.alloc(6 * MIB, ()))
        for name in ("Adam", "SGD"):
            if name == "Adam" or number < second:
                program.mark(f"Optimizer.step#{name}.step", "START")
                program.free(program.alloc(MIB, ()))
                program.mark(f"Optimizer.step#{name}.step", "END")
    found = diagnose(program.history()[0]).steps
    assert found.source == "annotations"
    assert found.count in (5, 4) if count == 5 else found.count == 5
