"""Ranges: which entries they hold, which phases they name, which of them are passes."""

from __future__ import annotations

import pytest

from oomscope.analysis.records import PHASES
from oomscope.analysis.said.range_names import is_programs, phase_named, unnumbered
from oomscope.analysis.said.ranges import NO_RANGE, Ranges, find_ranges
from oomscope.analysis.study import study_device
from tests.analysis.programs import MIB, Program, Training
from tests.named.marked import PLAIN, Marked


def ranges_of(program: Program) -> Ranges:
    return find_ranges(*program.history())


def names_around(ranges: Ranges, entry: int) -> list[str]:
    return [ranges.names[number] for number in ranges.around(entry)]


def test_an_entry_lies_in_every_range_that_is_open():
    program = Marked()
    program.alloc(MIB, PLAIN)
    with program.range("outer"):
        program.alloc(MIB, PLAIN)
        with program.range("inner"):
            program.alloc(MIB, PLAIN)
        program.alloc(MIB, PLAIN)
    program.alloc(MIB, PLAIN)
    ranges = ranges_of(program)
    assert [names_around(ranges, entry) for entry in range(5)] == [[], ["outer"], ["outer", "inner"], ["outer"], []]
    assert ranges.begin.tolist() == [1, 2]
    assert ranges.end.tolist() == [4, 3]


def test_a_range_that_never_ends_lasts_to_the_end():
    program = Marked()
    program.alloc(MIB, PLAIN)
    program.mark("failing", "START")
    program.alloc(MIB, PLAIN)
    program.oom(64 * MIB, PLAIN)
    ranges = ranges_of(program)
    assert names_around(ranges, 2) == ["failing"]
    assert ranges.end.tolist() == [3]


def test_ranges_whose_beginning_the_ring_lost_were_there_from_the_start():
    program = Marked()
    program.alloc(MIB, PLAIN)
    program.mark("inner", "END")
    program.alloc(MIB, PLAIN)
    program.mark("outer", "END")
    program.alloc(MIB, PLAIN)
    ranges = ranges_of(program)
    assert [names_around(ranges, entry) for entry in range(3)] == [["outer", "inner"], ["outer"], []]


def test_ranges_of_two_threads_that_cross_end_each_by_its_own_name():
    program = Marked()
    program.mark("a", "START")
    program.alloc(MIB, PLAIN)
    program.mark("b", "START")
    program.alloc(MIB, PLAIN)
    program.mark("a", "END")
    program.alloc(MIB, PLAIN)
    program.mark("b", "END")
    program.alloc(MIB, PLAIN)
    ranges = ranges_of(program)
    assert [ranges.innermost[entry] for entry in range(4)] == [0, 1, 1, NO_RANGE]


def test_no_annotation_and_no_time_are_no_range():
    program = Marked()
    program.alloc(MIB, PLAIN)
    ranges = ranges_of(program)
    assert len(ranges) == 0
    assert ranges.innermost.tolist() == [NO_RANGE]


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("forward", "forward"),
        ("model_fwd", "forward"),
        ("ForwardPass", "forward"),
        ("backward pass 3", "backward"),
        ("optimizer", "optimizer"),
        ("Optimizer.step#AdamW.step", "optimizer"),
        ("DistributedDataParallel.forward", "forward"),
        ("Optimizer.zero_grad#AdamW.zero_grad", None),
        ("forward_backward", None),
        ("FSDP::pre_forward", None),
        ("straightforward", None),
        ("train_step", None),
    ],
)
def test_a_name_says_a_phase_only_where_it_says_one(name, phase):
    assert phase_named(name) == phase


def test_a_number_at_the_end_is_no_part_of_the_name():
    assert [unnumbered(name) for name in ("step 7", "step_8", "batch[12]", "layer3", "17")] == [
        "step", "step", "batch", "layer3", "17",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["ProfilerStep#3", "nccl:all_reduce", "enumerate(DataLoader)#x", "## f ##", "[pl]x"])
def test_what_libraries_mark_is_not_the_programs(name):
    assert not is_programs(name)


def phases_of(program: Program) -> list[str]:
    study = study_device(program.snapshot(), 0)
    return [PHASES[phase] for phase in study.phases[study.history.lifetimes.born.argsort()].tolist()]


def test_a_range_names_the_phase_of_what_no_stack_tells():
    program = Marked()
    program.alloc(MIB, PLAIN)
    with program.range("train"), program.range("forward"):
        program.alloc(MIB, PLAIN)
        with program.range("attention"):
            program.alloc(MIB, PLAIN)
    with program.range("backward"):
        program.alloc(MIB, PLAIN)
    assert phases_of(program) == ["other", "forward", "forward", "backward"]


def test_a_range_does_not_overrule_a_stack():
    plain, marked = Training(), Training()
    plain.step()
    marked.mark("optimizer", "START")
    marked.step()
    marked.mark("optimizer", "END")
    assert phases_of(marked) == phases_of(plain)


def steps_of(program: Program) -> tuple[list[str], list[int], str]:
    steps = study_device(program.snapshot(), 0).steps
    return [step.name for step in steps.steps], list(steps.boundaries), steps.source


def test_ranges_around_each_pass_are_its_steps():
    program = Marked()
    for _ in range(3):
        with program.range("validate"), program.range("forward"):
            program.free(program.alloc(MIB, PLAIN))
    assert steps_of(program) == (["validate 0", "validate 1", "validate 2"], [0, 3, 6], "annotations")


def test_ranges_with_a_number_keep_it():
    program = Marked()
    for number in (7, 8):
        with program.range(f"batch {number}"):
            program.alloc(MIB, PLAIN)
    assert steps_of(program)[0] == ["batch 7", "batch 8"]


def test_ranges_that_hold_little_are_no_steps():
    program = Marked()
    for _ in range(2):
        with program.range("logging"):
            program.alloc(MIB, PLAIN)
        for _ in range(5):
            program.alloc(MIB, PLAIN)
    assert steps_of(program)[0] == []


@pytest.mark.parametrize(("steps_a_range", "expected"), [(1, 4), (2, 4)])
def test_an_epoch_of_several_optimizer_steps_is_no_step(steps_a_range, expected):
    program = Training()
    for _ in range(4 // steps_a_range):
        program.mark("round", "START")
        for _ in range(steps_a_range):
            program.step()
        program.mark("round", "END")
    steps = study_device(program.snapshot(), 0).steps
    assert (steps.count, steps.source) == (expected, "annotations")
    assert steps.steps[0].name.startswith("round") == (steps_a_range == 1)


def test_a_range_around_the_whole_program_hides_no_steps():
    program = Marked()
    with program.range("main"):
        for _ in range(3):
            with program.range("serve"):
                program.free(program.alloc(MIB, PLAIN))
    assert steps_of(program)[0] == ["serve 0", "serve 1", "serve 2"]


def test_of_ranges_within_ranges_the_outer_ones_are_the_steps_where_no_optimizer_tells():
    program = Marked()
    for _ in range(2):
        with program.range("request"):
            program.alloc(MIB, PLAIN)
            for _ in range(3):
                with program.range("token"):
                    program.alloc(MIB, PLAIN)
    assert steps_of(program)[0] == ["request 0", "request 1"]


def test_ranges_that_lie_in_one_another_are_no_passes():
    program = Marked()
    with program.range("recurse"), program.range("recurse"):
        program.alloc(MIB, PLAIN)
    assert steps_of(program)[0] == []
