"""The failing pass against the last one that was finished."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import calls_in_progress as rules_of_calls
from oomscope.analysis.passes import failing_pass as rules
from oomscope.analysis.passes.calls_in_progress import find_calls_in_progress
from oomscope.analysis.passes.failing_pass import find_failing_pass
from oomscope.analysis.passes.finished import finished_before, passes_of
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.loop_that_matters import constructs, loop_that_matters, pass_begins
from oomscope.analysis.passes.records import CallsInProgress, FailingPass
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.model import Action
from oomscope.reading import load
from tests.analysis.asking import diagnose
from tests.analysis.programs import MIB
from tests.passes.scripts import BACKWARD_CALL, IN_THREAD, OPTIMIZER_CALL, Script
from tests.shared import needs_shared, shared_snapshot
from tests.verdict.known import PROGRAMS


def failing(script: Script) -> FailingPass | None:
    diagnosis = diagnose(script.snapshot())
    return find_failing_pass(diagnosis.study, diagnosis.at)


def step(script: Script, mib: float, *, fails: bool = False, layers: int = 3) -> None:
    batch = script.at(31, mib)
    kept = [script.layer(32, 10 + layer, 2 * mib) for layer in range(layers)]
    if fails:
        script.fails(33, 4 * mib)
        return
    kept += [script.at(33, 4 * mib), script.at(34, 8, *BACKWARD_CALL)]
    script.free(script.at(35, 8, *OPTIMIZER_CALL), batch, *kept)


def steps(*mib: float) -> Script:
    """A step of each size, the last of which fails."""
    script = Script()
    with script.call(50, "train"):
        for size in mib[:-1]:
            step(script, size)
        step(script, mib[-1], fails=True)
    return script


def test_a_batch_eight_times_as_large_is_told_with_its_line():
    found = failing(steps(2, 2, 16))
    assert found is not None
    assert found.loop is not None
    assert (found.loop.function, found.loop.line) == ("train", 31)
    assert (found.index, found.completed, found.ratio, found.staircase) == (2, 2, 8.0, None)
    assert found.grew_at is not None
    assert found.grew_at.line == 33
    assert found.began_at is not None
    assert found.began_at.line == 31


def test_a_pass_is_compared_with_the_largest_before_it_as_well():
    found = failing(steps(2, 8, 2, 16))
    assert found is not None
    assert (found.ratio, found.ratio_to_largest, found.is_larger) == (8.0, 2.0, True)
    small = failing(steps(2, 16, 2, 16))
    assert small is not None
    assert (small.ratio, small.ratio_to_largest, small.is_larger) == (8.0, 1.0, False)


def test_a_line_that_all_layers_share_is_compared_as_far_as_the_pass_has_come():
    """Each layer asks on the same line for twice as much as the one before; the larger pass fails in its third."""
    script = Script()
    with script.call(50, "run"):
        for scale in (2, 2, 6):
            batch = script.at(31, scale)
            kept = [script.at(32, scale * 2**layer) for layer in range(2)]
            if scale > 2:
                script.fails(32, scale * 4)
                break
            script.free(batch, *kept, *(script.at(32, scale * 2**layer) for layer in range(2, 5)))
    found = failing(script)
    assert found is not None
    assert (found.ratio, found.ratio_to_largest, found.is_larger) == (3.0, 3.0, True)


@pytest.mark.parametrize(
    ("kind", "line", "is_part"),
    [("wrapped", None, True), ("late", None, True), ("full", None, False), ("wrapped", 30, False), ("late", 36, True)],
)
def test_of_a_trace_that_begins_within_the_loop_there_may_be_more_passes(
    monkeypatch: pytest.MonkeyPatch, kind: str, line: int | None, is_part: bool
):
    """A line of the function above the loop shows that it had not begun; one below it does not."""
    monkeypatch.setattr(DeviceStudy, "history_kind", property(lambda _: kind))
    script = Script()
    with script.call(50, "train"):
        if line is not None:
            script.free(script.at(line, 4))
        step(script, 2)
        step(script, 2)
        step(script, 16, fails=True)
    found = failing(script)
    assert found is not None
    assert (found.completed, found.is_part, found.is_first) == (2, is_part, False)


def test_passes_of_earlier_runs_of_the_loop_are_compared_with_too():
    script = Script()
    with script.call(50, "train"):
        for sizes in ((2, 16), (2, 2)):
            order = script.at(30, 4)
            for size in sizes:
                step(script, size)
            script.free(order)
        script.at(30, 4)
        step(script, 2)
        step(script, 16, fails=True)
    found = failing(script)
    assert found is not None
    assert (found.completed, found.ratio, found.ratio_to_largest, found.is_larger) == (1, 8.0, 1.0, False)


def test_the_line_of_the_loop_is_told_where_functions_below_it_allocate():
    script = Script()
    with script.call(50, "train"):
        for size in (2, 2, 16):
            with script.call(31, "get_batch"):
                batch = script.at(80, size)
            if size > 2:
                script.fails(33, size)
            else:
                script.free(script.at(34, 8, *BACKWARD_CALL), batch)
    found = failing(script)
    assert found is not None
    assert found.began_at is not None
    assert (found.began_at.function, found.began_at.line) == ("train", 31)


def test_what_a_model_is_called_with_is_larger_from_the_call_on():
    script = Script()
    with script.call(50, "train"):
        for size in (2, 2, 16):
            layers = [script.layer(32, 10 + layer, size) for layer in range(3)]
            if size > 2:
                script.fails(33, size)
            else:
                script.free(script.at(34, 8, *BACKWARD_CALL), *layers)
    found = failing(script)
    assert found is not None
    assert found.began_at is not None
    assert (found.began_at.function, found.began_at.line) == ("train", 32)


def test_a_pass_like_the_last_has_ratio_one_and_no_line_that_grew():
    found = failing(steps(4, 4, 4, 4))
    assert found is not None
    assert (found.completed, found.ratio, found.grew_at) == (3, 1.0, None)


def test_what_fails_before_any_loop_has_come_back_is_in_no_pass():
    assert failing(steps(4)) is None


def test_passes_of_earlier_runs_of_the_loop_are_counted_by_themselves():
    script = Script()
    with script.call(50, "train"):
        for epoch in range(3):
            order = script.at(30, 4)
            for number in range(4 if epoch < 2 else 3):
                step(script, 4, fails=(epoch, number) == (2, 2))
            script.free(order)
    found = failing(script)
    assert found is not None
    assert (found.completed, found.before, found.finished) == (2, 8, 10)


def test_a_line_that_only_some_passes_come_to_does_not_hide_those_before():
    """``if step % 3 == 0: print(...)``: to the trace it is a loop within a loop."""
    script = Script()
    with script.call(50, "train"):
        for number in range(12):
            step(script, 16 if number == 11 else 4, fails=number == 11)
            if number % 3 == 0:
                script.free(script.at(40, 4))
    found = failing(script)
    assert found is not None
    assert (found.completed, found.finished) == (1, 11)


def test_a_snapshot_without_a_trace_has_no_pass_no_calls_and_no_growth():
    script = Script()
    script.at(31, 4)
    script.entries.clear()
    study = diagnose(script.snapshot()).study
    for entry in (-1, 0):
        assert find_failing_pass(study, entry) is None
        assert find_calls_in_progress(study, entry) == ()
    assert find_growth(study, -1) == ()


def test_batches_that_grow_pass_after_pass_are_a_staircase():
    found = failing(steps(2, 3, 4, 5, 6))
    assert found is not None
    assert found.staircase == (8 * MIB, 24 * MIB)


def test_the_least_stairs():
    assert rules.LEAST_STAIRS == 3
    low, high = failing(steps(2, 3, 4)), failing(steps(2, 3, 4, 5))
    assert low is not None
    assert high is not None
    assert (low.staircase, high.staircase) == (None, (8 * MIB, 20 * MIB))


@pytest.mark.parametrize(("last", "is_stair"), [(2.45, True), (2.55, False)])
def test_one_batch_that_stands_out_is_no_stair(last, is_stair):
    """The stairs before are 1.25 at most; `MOST_LAST_STAIR` allows twice that."""
    assert rules.MOST_LAST_STAIR == 2.0
    found = failing(steps(1, 1.25, 1.5, 1.875, 1.875 * last))
    assert found is not None
    assert (found.staircase is not None) == is_stair


def mixed(agreeing: float) -> float | None:
    """Two requests of a pass of which `agreeing` of the bytes have doubled, and the rest has tripled."""
    script = Script()
    with script.call(50, "train"):
        for factors in ((1, 1), (2, 3)):
            script.free(
                script.at(31, agreeing * 100 / 2 * factors[0]), script.at(32, (1 - agreeing) * 100 / 3 * factors[1])
            )
        script.fails(32, 0.01)
    found = failing(script)
    assert found is not None
    return found.ratio


def test_most_of_the_bytes_must_share_the_ratio():
    assert mixed(rules.LEAST_AGREEING + 0.02) == pytest.approx(2.0, rel=0.01)
    assert mixed(rules.LEAST_AGREEING - 0.02) is None


def changed(part: float) -> float | None:
    """A pass of 100 MiB of which `part` is twice what it was."""
    script = Script()
    with script.call(50, "train"):
        for factor in (1, 2):
            script.free(script.at(31, part * 50 * factor), script.at(32, (1 - part) * 100))
        script.fails(32, 0.01)
    found = failing(script)
    assert found is not None
    return found.ratio


def test_what_does_not_grow_with_the_batch_is_left_out_of_the_ratio():
    assert changed(rules.LEAST_CHANGED + 0.02) == 2.0
    assert changed(rules.LEAST_CHANGED - 0.02) == 1.0


def grown(mib: float, factor: float) -> FailingPass | None:
    script = Script()
    with script.call(50, "train"):
        for number in range(3):
            script.free(script.at(31, mib * (factor if number == 2 else 1)), script.at(32, 0.01))
        script.fails(32, 0.01)
    return failing(script)


def test_what_is_called_the_same_and_what_is_too_small_to_tell():
    same, more = grown(100, 1 + rules.SAME - 0.01), grown(100, 1 + rules.SAME + 0.01)
    small, large = grown(0.4, 2), grown(0.5, 2)
    assert [one and one.ratio for one in (same, more)] == [1.0, 1.06]
    assert rules.LEAST_COMPARED == MIB
    assert [one and one.ratio for one in (small, large)] == [None, 2.0]


def unrolled(script: Script, cells: int) -> list[int]:
    return [script.layer(22, 10) for _ in range(cells) for _ in (script.at(21),)]


def text(*cells: int) -> Script:
    """A recurrent cell over texts of these lengths; the last one fails."""
    script = Script()
    with script.call(50, "fit"):
        for number in cells[:-1]:
            first = len(script.live)
            script.at(20)
            unrolled(script, number)
            script.free(script.at(25, 1, *BACKWARD_CALL), *list(script.live)[first:-1])
        script.at(20)
        unrolled(script, cells[-1])
        script.fails(22, 500)
    return script


def test_a_run_that_gathers_for_longer_than_the_last_is_compared_with_it():
    found = failing(text(10, 12, 40))
    assert found is not None
    assert (found.index, found.earlier_run_passes) == (39, 12)


def test_a_run_no_longer_than_the_last_is_part_of_its_step():
    found = failing(text(10, 12, 9))
    assert found is not None
    assert (found.index, found.earlier_run_passes) == (2, None)


def test_the_batch_of_an_epoch_is_told_and_not_the_epoch():
    script = Script()
    for number in range(3):
        script.free(script.at(40))
        with script.call(50, "train"):
            for _ in range(5 if number < 2 else 3):
                step(script, 2)
            if number == 2:
                step(script, 2, fails=True)
    found = failing(script)
    assert found is not None
    assert (found.loop and found.loop.function, found.index) == ("train", 3)


def serving(*, finished: int, underway: int, further: int) -> Script:
    """Requests by threads: `finished` ones one after another, then `underway` at once, `further` of them a line on."""
    script = Script()
    script.calls, script.inside, script.outside = [], "serve", IN_THREAD
    for _ in range(finished):
        script.free(script.at(5, 4), script.at(6, 4), script.at(7, 2))
    for _ in range(underway):
        script.at(5, 4)
    for _ in range(further):
        script.at(6, 4)
    script.fails(6, 500)
    return script


def calls(script: Script) -> tuple[CallsInProgress, ...]:
    diagnosis = diagnose(script.snapshot())
    return find_calls_in_progress(diagnosis.study, diagnosis.at)


def test_calls_that_overlap_are_counted_and_are_no_passes():
    script = serving(finished=10, underway=32, further=20)
    assert calls(script) == (CallsInProgress("serve", "/workspace/train/train.py", 5, 32),)
    assert failing(script) is None


def test_one_call_after_another_is_none_at_once():
    assert calls(serving(finished=10, underway=1, further=1)) == ()
    assert [one.calls for one in calls(serving(finished=10, underway=2, further=1))] == [2]


def test_a_last_line_that_allocates_several_times_ends_one_call():
    script = Script()
    script.calls, script.inside, script.outside = [], "serve", IN_THREAD
    for _ in range(6):
        script.free(script.at(5, 4), *[script.at(7, 4) for _ in range(3)])
    for _ in range(9):
        script.at(5, 4)
    script.fails(7, 500)
    assert [one.calls for one in calls(script)] == [9]


def begun(*counts: int) -> int:
    """Calls at once, where each line of the call has been come to so many times, none of them to its end."""
    script = Script()
    script.calls, script.inside, script.outside = [], "serve", IN_THREAD
    for line, count in enumerate(counts):
        for _ in range(count):
            script.at(5 + line, 4)
    script.fails(5, 500)
    return sum(one.calls for one in calls(script))


def test_the_line_that_tells_how_far_calls_are_where_none_has_ended():
    """At the edge of `LEAST_OF_CALLS`: a quarter of twelve."""
    assert rules_of_calls.LEAST_OF_CALLS == 1 / 4
    assert begun(12, 8, 3) == 9
    assert begun(12, 8, 2) == 4


@pytest.mark.parametrize(("rare", "at_once"), [(2, 1), (3, 28)])
def test_a_line_that_calls_come_to_rarely_ends_none(rare, at_once):
    """At the edge of `LEAST_CAUGHT_UP`: a tenth of thirty calls, after which a line falls behind."""
    assert rules_of_calls.LEAST_CAUGHT_UP == 1 / 10
    script = Script()
    script.calls, script.inside, script.outside = [], "serve", IN_THREAD
    for number in range(29):
        made = [script.at(5, 4), script.at(6, 4)]
        if number < rare:
            made.append(script.at(9, 4))
        script.free(*made)
    script.at(5, 4)
    script.fails(6, 500)
    assert sum(one.calls for one in calls(script)) in (at_once, at_once - 1)


def test_blocks_of_finished_passes_are_told_from_those_of_the_pass_in_progress():
    script = Script()
    with script.call(50, "train"):
        for _ in range(3):
            script.at(31, 4)
            script.free(script.at(32, 4))
        script.at(31, 4)
        script.fails(32, 500)
    diagnosis = diagnose(script.snapshot())
    lifetimes = diagnosis.history.lifetimes
    rows = lifetimes.allocated_at(diagnosis.at).nonzero()[0]
    rows = rows[lifetimes.born[rows].argsort()]
    assert passes_of(diagnosis.study, rows, diagnosis.at).tolist() == [0, 1, 2, 3]
    assert finished_before(diagnosis.study, rows, diagnosis.at).tolist() == [True, True, True, False]
    assert len(pass_begins(diagnosis.study, diagnosis.at)) == 4


@needs_shared
@pytest.mark.parametrize(
    ("name", "completed", "ratio"),
    [("oom_activations", 1, 48.0), ("oom_varlen_15.4", 1, 1.0), ("oom_leak_total_loss", 32, 1.0)],
)
def test_the_failing_pass_of_real_programs(name, completed, ratio):
    snapshot = shared_snapshot(name)
    diagnosis = diagnose(snapshot, snapshot.devices[0].index)
    found = find_failing_pass(diagnosis.study, diagnosis.at)
    assert found is not None
    assert (found.completed, found.ratio) == (completed, ratio)


@pytest.mark.parametrize(("further", "at_once"), [(2, 0), (3, 10)])
def test_calls_that_are_still_in_a_loop_have_not_ended(further: int, at_once: int) -> None:
    """At the edge of `MOST_OF_ALL`: ten calls at once had come to a line twice each, before two more began."""
    assert rules_of_calls.MOST_OF_ALL == 0.95
    script = Script()
    script.calls, script.inside, script.outside = [], "render", IN_THREAD
    for line, count in ((5, 10), (6, 10), (7, 20), (5, 2), (6, 2), (7, further)):
        for _ in range(count):
            script.at(line, 4)
    script.fails(7, 500)
    assert sum(one.calls for one in calls(script)) == at_once


def test_the_parts_of_one_object_are_no_passes():
    """A server that loads a model after it has answered: the layers are made by a loop in the constructor."""
    study = study_device(load(PROGRAMS / "hot_reload_server.pickle.xz"), 0)
    failed = int(study.history.trace.entries(Action.OOM)[-1])
    runs = [run for run in study.loops.runs if run.is_running(failed)]
    assert [constructs(study, run, failed) for run in runs] == [False, True]
    assert loop_that_matters(study, failed) is runs[0]


@pytest.mark.parametrize(
    ("line", "moves"),
    [
        ("ids, real = ids.to(self.device), real.to(self.device)", True),
        ("images = images.cuda(non_blocking=True)  # pinned", True),
        ("batch = {key: value.to(device) for key, value in batch.items()}", True),
        ("logits = model(features.to(DEVICE))", False),
        ("batch = next(batches)", False),
        ("model.to(device)", False),
    ],
)
def test_a_line_that_only_moves_what_a_loop_yields(line: str, moves: bool) -> None:
    assert rules._only_moves(line) is moves
