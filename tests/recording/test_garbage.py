"""What ended calls and garbage keep: whole models in reference cycles, and exceptions from deep down."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch", reason="the census asks torch's tensors")
pytestmark = pytest.mark.torch

from oomscope.recording.census.walk import take_census  # noqa: E402


@pytest.fixture
def holders():
    """The rows of all holders that have a name."""

    def take():
        census = take_census(torch, device_type="cpu")
        assert census.walk["complete"], census.walk["notes"]
        return [row for row in census.holders if row["holder"]]

    gc.collect()
    return take


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def only_cycle(found):
    (row,) = (row for row in found if row["kind"] == "cycle")
    return row


class Run:
    """A phase of a job: its callbacks refer back to it, so that it is freed only by the collector."""

    def __init__(self):
        self.model = torch.nn.Linear(64, 64)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.hooks = [self.finish]

    def finish(self):
        pass

    def train(self):
        self.model(torch.randn(8, 64)).sum().backward()
        self.optimizer.step()


def test_a_model_and_its_optimizer_in_garbage_are_held_by_the_cycle(holders, no_collector):
    for _ in range(2):
        Run().train()
    row = only_cycle(holders())
    assert row["holder"] == "reference cycle: Run.hooks[0].__self__ → Run"
    assert (row["place"], row["finished"], row["count"]) == ("cycle", True, 2)
    # Weight and bias with gradient, exp_avg, exp_avg_sq and step, in two runs.
    assert (row["tensors"], row["retained"]) == (20, 2 * (4 * 4 * (64 * 64 + 64) + 2 * 4))
    assert row["path"] == [f"{row['holder']}.model", f"{row['holder']}.optimizer"]


def test_a_model_in_a_cycle_that_is_in_use_is_called_what_it_is(holders, no_collector):
    run = Run()
    run.train()
    kinds = {row["kind"] for row in holders()}
    assert kinds >= {"parameter", "gradient", "optimizer_state"}
    assert "cycle" not in kinds
    del run


def test_garbage_of_its_own_is_told_apart_from_garbage_that_leads_to_it(holders, no_collector):
    def failing():
        run = Run()
        run.train()
        try:
            raise ValueError
        except ValueError as error:
            error.kept = error  # the frame of this call, and with it `run`, is garbage, too

    failing()
    assert only_cycle(holders())["holder"] == "reference cycle: Run.hooks[0].__self__ → Run"


def deep(levels):
    if levels:
        deep(levels - 1)
    else:
        activation = torch.randn(64, 512)
        raise ValueError(activation.shape)


def test_a_kept_exception_is_found_however_deep_its_call_was(holders):
    errors = []
    try:
        deep(300)
    except ValueError as error:
        errors.append(error)
    row = next(row for row in holders() if "errors" in row["holder"])
    assert (row["kind"], row["finished"]) == ("exception", True)
    assert row["path"][0].endswith("__traceback__ → deep: activation")


def test_models_of_failed_calls_are_held_by_the_exceptions_that_somebody_kept(holders, no_collector):
    taken, tensors = [], []

    def attempt(last):
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()
        if last:
            taken.extend(holders())
            tensors.extend(take_census(torch, device_type="cpu").tensors)
        raise ValueError

    def search():
        failures = []
        for index in range(3):
            try:
                attempt(index == 2)
            except ValueError as error:
                failures.append(error)

    search()
    assert sum("search: failures[" in way for row in tensors for way in row["holders"]) == 20
    row = next(row for row in taken if row["holder"] == "search: failures[*]")
    assert (row["kind"], row["finished"], row["count"]) == ("exception", True, 2)
    assert row["retained"] == 2 * (4 * 4 * (64 * 64 + 64) + 2 * 4)
    assert {row["holder"] for row in taken if row["kind"] == "parameter"} == {"model"}
