"""Growth from pass to pass, in programs of every kind; and none where nothing grows."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.passes import generations as rules
from oomscope.analysis.passes.growth import relief_in_passes
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.passes.straight_rise import (
    LEAST_FIT,
    LEAST_PACE,
    LEAST_RISE,
    NEAR_MOST,
    straight_rise,
)
from tests.analysis.asking import diagnose
from tests.analysis.programs import MIB, TORCH
from tests.builders import frame
from tests.passes.scripts import BACKWARD_CALL, IN_THREAD, MAKING, OPTIMIZER_CALL, Script


def growth(script: Script) -> tuple[Growth, ...]:
    return diagnose(script.snapshot()).growth()


def model(script: Script) -> None:
    """Eight parameters."""
    for _ in range(8):
        script.at(3, 2, *MAKING)


def forward(script: Script, line: int, mib: float = 2, layers: int = 4) -> list[int]:
    return [script.layer(line, 10 + layer, mib) for layer in range(layers)]


def train_step(script: Script, mib: float = 2) -> None:
    """A step that keeps nothing."""
    batch = script.at(31, mib)
    activations = forward(script, 32, mib)
    loss = script.at(33, 0.001)
    gradients = [script.at(34, 2, *BACKWARD_CALL) for _ in range(2)]
    script.free(*activations)
    script.free(script.at(35, 2, *OPTIMIZER_CALL), *gradients, loss, batch)


def validate(script: Script, *, passes: int, keep: int) -> None:
    with script.call(51, "validate"):
        for _ in range(passes):
            batch, kept = script.at(41), forward(script, 42)
            script.free(batch, *kept[keep:])


def test_inference_that_keeps_the_graph_of_every_batch_grows():
    script = Script()
    model(script)
    with script.call(50, "predict"):
        for _ in range(20):
            batch = script.at(20)
            forward(script, 21)
            script.free(batch)
        script.fails(20, 500)
    rows = growth(script)
    assert {row.site.line for row in rows if row.site} == {10, 11, 12, 13}
    assert all((row.generations, row.passes, row.blocks) == (20, 20, 20) for row in rows)
    assert all(row.loop and (row.loop.function, row.loop.line) == ("predict", 20) for row in rows)


def test_a_leak_in_validation_alone_is_found_over_epochs():
    script = Script()
    model(script)
    for _ in range(6):
        with script.call(50, "train"):
            for _ in range(5):
                train_step(script)
        validate(script, passes=4, keep=1)
    with script.call(50, "train"):
        script.fails(32, 500)
    (row,) = growth(script)
    assert (row.passes, row.blocks, row.bytes_per_step) == (6, 24, 8 * MIB)
    assert row.loop is not None
    assert row.loop.function == "<module>"


def test_a_leak_in_validation_is_found_within_the_second_epoch():
    script = Script()
    model(script)
    for passes in (10, 7):
        with script.call(50, "train"):
            for _ in range(5):
                train_step(script)
        validate(script, passes=passes, keep=1)
    (row,) = growth(script)
    assert (row.loop and row.loop.function, row.blocks) == ("validate", 17)


def test_a_leak_beside_a_batch_that_is_freed_is_found_after_one_step():
    script = Script()
    model(script)
    with script.call(50, "train"):
        train_step(script)
    validate(script, passes=12, keep=1)
    (row,) = growth(script)
    assert (row.blocks, row.passes) == (12, 11)


@pytest.mark.parametrize("length", [2, 8])
def test_a_window_is_no_growth(length):
    script, window = Script(), []
    model(script)
    with script.call(50, "track"):
        for _ in range(30):
            window.append(script.layer(21, 10, 4))
            script.free(script.at(22))
            if len(window) > length:
                script.free(window.pop(0))
        script.fails(21, 500)
    assert growth(script) == ()


def test_batches_that_are_fetched_ahead_are_no_growth():
    script = Script()
    ahead: list[int] = []
    for _ in range(20):
        with script.call(30, "fetch"):
            while len(ahead) < 3:
                ahead.append(script.at(7, 8))
        script.free(*forward(script, 31), ahead.pop(0))
    script.fails(31, 500)
    assert growth(script) == ()


def unrolled(script: Script, cells: int) -> list[int]:
    """A recurrent cell that is called from the script once a time step."""
    kept = []
    for _ in range(cells):
        kept += [script.layer(22, 10), script.at(23)]
    return kept


def test_what_an_unrolled_network_gathers_is_no_growth_where_earlier_runs_gave_back():
    script = Script()
    model(script)
    with script.call(50, "fit"):
        for cells in (12, 9, 11):
            batch, kept = script.at(20), unrolled(script, cells)
            script.free(script.at(25, 1, *BACKWARD_CALL), *kept, batch)
        script.at(20)
        unrolled(script, 80)
        script.fails(22, 500)
    assert growth(script) == ()


def test_losses_that_are_gathered_for_one_backward_are_no_growth():
    script = Script()
    model(script)
    with script.call(50, "step"):
        for micro in (8, 8, 6):
            kept = []
            for _ in range(micro):
                batch = script.at(20)
                kept += [batch, *forward(script, 21)]
            script.free(script.at(25, 1, *BACKWARD_CALL), *kept)
    assert growth(script) == ()


@pytest.mark.parametrize("lines", [(20,), (20, 21), (20, 21, 22)])
@pytest.mark.parametrize("layers", [12, 48])
def test_layers_of_one_forward_are_no_growth(lines, layers):
    script = Script()
    model(script)
    script.at(31, 4)
    for _ in range(layers):
        for line in lines:
            script.layer(32, line, 8)
    script.fails(32, 500, *())
    assert growth(script) == ()
    assert diagnose(script.snapshot()).steps.count == 0


def test_results_of_a_model_called_on_one_line_are_growth_once_they_are_too_many_for_layers():
    few, many = Script(), Script()
    for script, passes in ((few, rules.MOST_LAYERS), (many, rules.MOST_LAYERS + 2)):
        for _ in range(passes):
            kept = forward(script, 32, layers=8)
            script.free(*kept[:-1])
        script.fails(32, 500)
    assert growth(few) == ()
    assert [row.blocks for row in growth(many)] == [rules.MOST_LAYERS + 2]


@pytest.mark.parametrize(("kept", "found"), [(1, 1), (2, 0)])
def test_layers_keep_more_of_what_they_make_than_results_are(kept, found):
    """At the edge of `MOST_OF_RESULTS`: one of five is a result, two of five are activations."""
    script = Script()
    for _ in range(rules.MOST_LAYERS + 2):
        made = forward(script, 32, layers=5)
        script.free(*made[kept:])
    script.fails(32, 500)
    assert rules.MOST_OF_RESULTS == 1 / 5
    assert len(growth(script)) == found


def test_a_generator_that_keeps_what_it_yields_grows():
    script = Script()
    model(script)
    for _ in range(15):
        with script.call(30, "batches"):
            script.at(7, 4)
        script.free(*forward(script, 31))
    script.fails(31, 500)
    (row,) = growth(script)
    assert (row.site and row.site.function, row.passes) == ("batches", 14)


def serve(script: Script, requests: int, at_once: int, *, keep: int = 0) -> None:
    """Threads that handle requests, as many at once as they are; the lines of their calls alternate."""
    script.calls, script.inside, script.outside = [], "handle", IN_THREAD
    for _ in range(requests // at_once):
        held = [[script.at(5, 4)] for _ in range(at_once)]
        for line in (6, 7):
            for mine in held:
                mine.append(script.at(line, 4))
        for mine in held:
            script.free(*mine[keep:])


def test_many_calls_at_once_are_no_generations():
    script = Script()
    model(script)
    serve(script, 32, 4)
    for _ in range(24):
        script.at(5, 4)
    for _ in range(20):
        script.at(6, 4)
    script.fails(6, 500)
    diagnosis = diagnose(script.snapshot())
    assert diagnosis.growth() == ()


def test_a_cache_that_requests_fill_in_threads_is_growth():
    script = Script()
    model(script)
    serve(script, 160, 4, keep=1)
    script.fails(5, 500)
    (row,) = growth(script)
    assert (row.site and row.site.line, row.blocks) == (5, 160)


def test_a_cache_without_bounds_grows():
    script = Script()
    model(script)
    for number in range(60):
        with script.call(60, "handle"):
            answer = forward(script, 12)
            if number % 3:
                script.at(14, 4)
            script.free(*answer)
    script.fails(12, 500)
    (row,) = growth(script)
    assert (row.site and row.site.line, row.kind) == (14, "generations")


def test_loops_over_parameters_leave_nothing_that_grows():
    script = Script()
    for _ in range(60):
        script.at(3, 4, *MAKING)
    with script.call(50, "train"):
        train_step(script)
    for _ in range(60):
        script.at(35, 4, *OPTIMIZER_CALL)
        script.at(35, 4, frame("_init_group", 182, OPTIMIZER_CALL[0]["filename"]), *OPTIMIZER_CALL[1:])
    script.fails(35, 500, *OPTIMIZER_CALL)
    assert growth(script) == ()


def state_of(script: Script, steps: int) -> tuple[Growth, ...]:
    model(script)
    with script.call(50, "fit"):
        for _ in range(steps):
            train_step(script)
            script.at(35, 8, frame("_init_group", 182, OPTIMIZER_CALL[0]["filename"]), *OPTIMIZER_CALL[1:])
        script.fails(31, 500)
    return growth(script)


def test_optimizer_state_that_comes_with_every_step_is_growth_after_enough_of_them():
    assert state_of(Script(), rules.LEAST_OF_STATE - 1) == ()
    (row,) = state_of(Script(), rules.LEAST_OF_STATE)
    assert (row.passes, row.bytes_per_step) == (rules.LEAST_OF_STATE, 8 * MIB)


def test_a_data_set_put_on_the_card_before_training_is_no_growth():
    script = Script()
    for _ in range(40):
        script.at(5, 8)
    with script.call(50, "train"):
        for _ in range(3):
            train_step(script)
        script.fails(32, 500)
    assert growth(script) == ()


def test_a_list_that_is_being_filled_when_a_request_fails_is_growth_and_said_to_keep_all():
    script = Script()
    for _ in range(40):
        script.at(5, 8)
    script.fails(5, 8)
    (row,) = growth(script)
    assert (row.passes, row.blocks, row.keeps_all) == (40, 40, True)


def filled(given_back: int) -> tuple[Growth, ...]:
    """A hundred tensors on one line, of which some went at once; then the trace ends."""
    script = Script()
    for number in range(100):
        made = script.at(5, 8)
        if number < given_back:
            script.free(made)
    return growth(script)


def test_a_list_that_is_all_that_a_loop_makes_is_no_growth_where_nothing_failed():
    """At the edge of `KEEPS_ALL`; the pass in progress counts for neither side."""
    assert rules.KEEPS_ALL == 0.98
    assert filled(0) == ()
    assert filled(1) == ()
    assert len(filled(3)) == 1


def after_evaluation(blocks: int, *, fails: bool = True) -> tuple[Growth, ...]:
    """What an evaluation of five allocations a pass kept, and `blocks` more afterwards."""
    script = Script()
    model(script)
    validate(script, passes=20, keep=1)
    for number in range(blocks):
        script.at(60 + number, 8)
    if fails:
        script.fails(200, 500)
    return growth(script)


def test_what_follows_an_evaluation_at_once_is_short_of_what_it_kept():
    """At the edge of `JUST_ENDED`, which the failed request counts for."""
    assert rules.JUST_ENDED * 5 == 10
    assert len(after_evaluation(9)) == 1
    assert after_evaluation(10) == ()


def test_inputs_of_captured_graphs_are_made_once():
    """A loop that has just ended and made CUDA graphs, each with a pool of its own, against one without pools."""
    rows = {}
    for pool in (0, 1):
        script = Script()
        model(script)
        with script.call(50, "capture"):
            for _ in range(10):
                script.at(9, 4)
                script.layer(12, 10, 2)
        script.fails(60, 500)
        diagnosis = diagnose(script.snapshot())
        lifetimes = diagnosis.history.lifetimes
        lifetimes.pool[lifetimes.requested == 2 * MIB] = pool
        rows[pool] = [row.site.line for row in diagnosis.growth() if row.site]
    assert rows == {0: [9, 10], 1: []}


def plain_layers(layers: int, *, keep: int = 2, outer: str = "encode") -> tuple[Growth, ...]:
    """A model of plain functions, no Module: each layer makes three tensors of which some are kept."""
    script = Script()
    with script.call(31, outer):
        script.at(5, 4)
        for _ in range(layers):
            with script.call(7, "block"):
                linear = frame("linear", 2, f"{TORCH}/nn/functional.py")
                made = [script.at(20 + line, 4, linear) for line in range(3)]
                script.free(*made[keep:])
        script.fails(9, 500)
    return growth(script)


def test_layers_of_plain_functions_are_no_growth_unless_they_are_too_many():
    assert plain_layers(24) == ()
    assert plain_layers(rules.MOST_LAYERS) == ()
    assert plain_layers(24, keep=0) == ()
    assert len(plain_layers(rules.MOST_LAYERS + 40)) == 2


def test_a_forward_that_is_called_by_name_is_a_modules_call():
    assert plain_layers(rules.MOST_LAYERS + 40, outer="forward") == ()


def test_generations_of_a_wrapped_ring_count_and_replaced_ones_do_not():
    for window in (None, 12):
        script, kept = Script(), []
        model(script)
        with script.call(50, "track"):
            for number in range(30):
                if number == 14:
                    gone = len(script.entries)
                kept.append(script.layer(21, 10, 4))
                script.free(script.at(22))
                if window and len(kept) > window:
                    script.free(kept.pop(0))
            script.fails(21, 500)
        del script.entries[:gone]
        rows = growth(script)
        if window:
            assert rows == ()
        else:
            assert [(row.generations, row.blocks) for row in rows] == [(30, 30)]


def few(passes: int, *, keeps_from: int = 0) -> tuple[Growth, ...]:
    script = Script()
    model(script)
    with script.call(50, "predict"):
        for number in range(passes):
            batch, kept = script.at(20), forward(script, 21)
            script.free(batch, *kept[number >= keeps_from :])
        script.fails(20, 500)
    return growth(script)


def test_two_passes_are_enough_only_if_all_so_far_left_something():
    assert (rules.LEAST_OF_ALL, rules.LEAST_PASSES) == (2, 3)
    assert few(1) == ()
    assert [row.passes for row in few(2)] == [2]
    assert few(3, keeps_from=1) == ()
    assert [row.passes for row in few(4, keeps_from=1)] == [3]


def test_a_few_blocks_from_before_the_trace_show_that_a_site_has_gone_on():
    assert rules.LEAST_BEFORE == 3
    for before, found in ((2, 0), (3, 1)):
        script = Script()
        model(script)
        with script.call(50, "track"):
            for number in range(before + 4):
                if number == before:
                    gone = len(script.entries)
                made = script.layer(21, 10, 4)
                script.free(script.at(22))
                if before <= number < before + 2:
                    script.free(made)
            script.fails(21, 500)
        del script.entries[:gone]
        assert len(growth(script)) == found


def gaps(pattern: str) -> tuple[Growth, ...]:
    """Passes that leave something where `pattern` has a one."""
    script = Script()
    model(script)
    with script.call(50, "predict"):
        for one in pattern:
            batch, kept = script.at(20), forward(script, 21)
            script.free(batch, *kept[int(one) :])
        script.fails(20, 500)
    return growth(script)


def test_passes_that_leave_something_now_and_then_must_do_so_at_a_pace():
    """At the edge of `LEAST_COVERED`: six of ten."""
    assert rules.LEAST_COVERED == 0.6
    assert len(gaps("1010101010")) == 1
    assert len(gaps("1111000011")) == 1
    assert gaps("1110000011") == ()
    assert gaps("1111111100") == ()


def test_relief_is_measured_in_passes():
    row = few(20)[0]
    assert relief_in_passes(10 * row.bytes_per_step, (row,)) == 10
    assert relief_in_passes(row.bytes_per_step - 1, (row,)) == 0
    assert relief_in_passes(-1, (row,)) == 0
    assert relief_in_passes(1 << 30, ()) is None


def test_a_rise_is_straight_to_its_end():
    assert straight_rise(np.arange(10.0)) == (pytest.approx(1), pytest.approx(1))
    assert straight_rise(np.ones(10)) is None
    assert straight_rise(np.array([5.0])) is None
    assert straight_rise(np.arange(10.0)[::-1]) is None


def scattered(noise: float) -> np.ndarray:
    return np.arange(40.0) + noise * np.tile([1.0, -1.0], 20)


def test_the_least_fit_of_a_rise():
    noises = np.arange(0.0, 12.0, 0.05)
    fits = [float(np.corrcoef(np.arange(40), scattered(noise))[0, 1]) ** 2 for noise in noises]
    above = max(noise for noise, fit in zip(noises, fits, strict=True) if fit >= LEAST_FIT)
    curve, beyond = scattered(above), scattered(above + 0.05)
    for values in (curve, beyond):
        values[-1] = values.max() + 1
    assert float(np.corrcoef(np.arange(40), scattered(above + 0.05))[0, 1]) ** 2 < LEAST_FIT
    assert straight_rise(curve) is not None
    assert straight_rise(scattered(above + 2)) is None


@pytest.mark.parametrize(("last", "rises"), [(NEAR_MOST * 100 + 0.01, True), (NEAR_MOST * 100 - 0.01, False)])
def test_what_falls_back_from_the_most_is_being_given_back(last, rises):
    assert (straight_rise(np.append(np.arange(101.0), last)) is not None) == rises


@pytest.mark.parametrize(("constant", "rises"), [(0.99, True), (1.01, False)])
def test_a_large_constant_that_drifts_is_no_rise(constant, rises):
    base = constant * (10 / LEAST_RISE - 9)
    assert (straight_rise(base + np.arange(10.0)) is not None) == rises


@pytest.mark.parametrize(("pace", "rises"), [(LEAST_PACE + 0.02, True), (LEAST_PACE - 0.02, False)])
def test_what_fills_up_slows_down(pace, rises):
    early, late = np.ones(20), np.full(10, 1.0)
    late *= pace * 2 / (3 - pace)
    assert (straight_rise(np.append(0, np.cumsum(np.append(early, late)))) is not None) == rises


def gradients(passes: int, *, kept: bool) -> tuple[Growth, ...]:
    """Training steps whose gradients go into a list, or are dropped when the next are made."""
    script, before = Script(), []
    model(script)
    with script.call(50, "train"):
        for _ in range(passes):
            hidden = forward(script, 32, 3)
            made = [script.at(34, 2, *BACKWARD_CALL) for _ in range(8)]
            script.free(script.at(35, 5, *OPTIMIZER_CALL), *hidden, *([] if kept else before))
            before = made
        script.fails(33, 500)
    return growth(script)


def test_gradients_of_earlier_passes_grow_where_they_are_kept():
    assert gradients(12, kept=False) == ()
    (found,) = gradients(12, kept=True)
    assert found.site is not None
    assert (found.site.line, found.bytes_per_step, found.generations) == (34, 16 * MIB, 11)
