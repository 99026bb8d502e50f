"""Models that passes leave behind, requests that continue a series, and passes that train: each rule at its edge."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import finished, kept_models, rising_request
from oomscope.analysis.passes.kept_models import find_kept_models
from oomscope.analysis.passes.rising_request import find_rising_request
from oomscope.analysis.study import DeviceStudy, study_device
from tests.analysis.programs import MIB
from tests.passes.scripts import BACKWARD_CALL, MAKING, Script


def studied(script: Script) -> tuple[DeviceStudy, int]:
    study = study_device(script.snapshot(), 0)
    return study, study.history.entries - 1


def sweep(*parameters: float) -> kept_models.KeptModels | None:
    """Passes that make a model of so many MiB each and keep it; the request fails in one more."""
    script = Script()
    with script.call(40, "sweep"):
        for mib in parameters:
            script.free(script.at(10, 1))
            for layer in range(4):
                script.at(11 + layer, mib / 4, *MAKING)
            script.free(script.layer(20, 7, 1))
        script.fails(10, 100)
    return find_kept_models(*studied(script))


@pytest.mark.parametrize(("models", "known"), [(1, False), (2, True)])
def test_two_models_are_kept_by_a_sweep(models: int, known: bool) -> None:
    assert kept_models.LEAST_MODELS == 2
    found = sweep(*([40] * models))
    assert (found is not None) is known
    if found is not None:
        assert (found.passes, found.bytes, found.trained) == (2, 80 * MIB, False)


@pytest.mark.parametrize(("second", "passes"), [(20, 3), (19.9, 2)])
def test_a_model_is_at_least_half_of_the_largest(second: float, passes: int) -> None:
    assert kept_models.ALIKE == 0.5
    found = sweep(40, second, 40)
    assert found is not None
    assert found.passes == passes


def test_the_layers_of_one_model_are_no_models() -> None:
    script = Script()
    with script.call(40, "main"), script.call(9, "__init__"):
        for _ in range(4):
            script.at(10, 40, *MAKING)
            script.at(11, 40, *MAKING)
        script.fails(10, 100)
    assert find_kept_models(*studied(script)) is None


def joining(sizes: list[float]) -> rising_request.RisingRequest | None:
    """Each tensor is joined from the one before, which then goes; the last size is the request that fails."""
    script = Script()
    last: int | None = None
    with script.call(40, "decode"):
        for mib in sizes[:-1]:
            new = script.at(11, mib)
            if last is not None:
                script.free(last)
            last = new
        script.fails(11, sizes[-1])
    return find_rising_request(*studied(script))


@pytest.mark.parametrize(("joins", "known"), [(3, False), (4, True)])
def test_four_joins_make_a_series(joins: int, known: bool) -> None:
    assert rising_request.LEAST_JOINS == 4
    found = joining([10.0 * (at + 1) for at in range(joins)] + [10.0 * joins + 12])
    assert (found is not None) is known
    if found is not None:
        assert (found.joins, found.per_join, found.live, found.grown) == (4, 10 * MIB, 40 * MIB, 72 * MIB)


@pytest.mark.parametrize(("joins", "known"), [(2, False), (3, True)])
def test_three_joins_of_equal_parts_make_a_series(joins: int, known: bool) -> None:
    assert rising_request.LEAST_EQUAL_JOINS == 3
    assert (joining([10.0 * (at + 1) for at in range(joins + 1)]) is not None) is known


@pytest.mark.parametrize(("last", "known"), [(30, True), (31, False)])
def test_a_series_rises_evenly(last: float, known: bool) -> None:
    assert rising_request.EVEN == 3.0
    assert (joining([10, 20, 30, 40, 50, 50 + last]) is not None) is known


@pytest.mark.parametrize("last", [50, 40])
def test_a_request_that_is_not_larger_continues_no_series(last: float) -> None:
    assert joining([10, 20, 30, 40, 50, last]) is None


@pytest.mark.parametrize(("trained", "whole_steps"), [(1, False), (2, True)])
def test_passes_are_steps_where_half_of_them_train(trained: int, whole_steps: bool) -> None:
    script = Script()
    with script.call(40, "train"):
        for number in range(5):
            kept = script.layer(11, 20, 2)
            if number < trained:
                script.free(script.at(12, 1, *BACKWARD_CALL))
            script.free(kept)
        script.fails(11, 100)
    study, entry = studied(script)
    assert finished.trains_within(study, entry) is whole_steps


@pytest.mark.parametrize("before", [False, True])
def test_a_program_has_trained_before_a_loop_or_has_not(before: bool) -> None:
    script = Script()
    if before:
        script.free(script.at(5, 1, *BACKWARD_CALL))
    with script.call(40, "evaluate"):
        for _ in range(5):
            script.layer(11, 20, 2)
            script.free(script.at(12, 1))
        script.fails(11, 100)
    study, entry = studied(script)
    assert finished.trained_before(study, entry) is before
    assert finished.goes_on(study, entry)
