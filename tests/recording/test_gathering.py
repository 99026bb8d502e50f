"""Loops that gather for a backward after them are told from those that have none to come."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from oomscope.recording import stacks
from oomscope.recording.gathering import find_gathering


class Stopped(Exception):
    """Raised where a request would have failed."""


class Loss:
    """What a backward can be called of."""

    def backward(self) -> None:
        """Nothing to do."""


def ask(value: Any, passes: int) -> Any:
    """Fails in the fourth pass, with what is then underway."""
    if passes < 3:
        return value
    calls: list[tuple[FrameType, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        calls.append((frame, frame.f_lasti))
        frame = frame.f_back
    raise Stopped(find_gathering(calls))


def propagate(value: Any) -> list[Any]:
    state, seen = value, []
    for number in range(5):
        new = ask(state, number)
        state = new
        seen.append(state)
    return seen


def summed() -> None:
    losses = []
    for number in range(5):
        losses.append(ask(Loss(), number))  # noqa: PERF401 - as it is written
    total = sum(losses)
    total.backward()


def in_an_outer_pass() -> None:
    for _ in range(3):
        states = propagate(1)
        loss: Any = sum(states)
        loss = loss / 2
        loss.backward()


def at_once() -> None:
    propagate(Loss())[0].backward()


class Trainer:
    """Keeps its loss in an attribute, and has another object call backward."""

    accelerator: Any = None
    loss: Any = None

    def fit(self) -> None:
        for batch in range(3):
            self.loss = self.step(batch)
            self.accelerator.backward(self.loss)

    def step(self, batch: int) -> Any:
        return propagate(batch)


def differentiated(autograd: Any = None) -> None:
    for batch in range(3):
        out = propagate(batch)
        print(autograd.grad(out, batch))


def evaluated_after_training() -> None:
    for _ in range(2):
        for _ in range(2):
            loss = Loss()
            loss.backward()
        outputs = propagate(1)
        print(len(outputs))


def evaluated_before_training() -> None:
    for _ in range(2):
        outputs = propagate(1)
        mean = sum(outputs) / 5
        for _ in range(2):
            loss = Loss()
            loss.backward()
        print(mean)


def state_that_is_carried_on() -> None:
    state: Any = 0
    for number in range(5):
        state = ask(state, number)
        loss = Loss()
        loss.backward()


def written_anew() -> None:
    loss: Any = propagate(Loss())
    loss = Loss()
    loss.backward()


def rows(run: Callable[[], None]) -> list[dict[str, Any]]:
    with pytest.raises(Stopped) as caught:
        run()
    found: list[dict[str, Any]] = caught.value.args[0]
    return found


@pytest.mark.parametrize(
    ("run", "loop", "backward"),
    [
        (summed, "summed", "summed"),
        (in_an_outer_pass, "propagate", "in_an_outer_pass"),
        (at_once, "propagate", "at_once"),
        (Trainer().fit, "propagate", "fit"),
        (differentiated, "propagate", "differentiated"),
    ],
)
def test_a_loop_gathers_for_the_backward_of_what_it_makes(run: Callable[[], None], loop: str, backward: str) -> None:
    (row,) = rows(run)
    assert row["at"]["name"] == loop
    assert row["at"]["line"] < row["last"] <= row["at"]["line"] + 4
    assert [frame["name"] for frame in row["backward"]] == [backward]


@pytest.mark.parametrize(
    "run", [evaluated_after_training, evaluated_before_training, state_that_is_carried_on, written_anew]
)
def test_a_backward_of_something_else_is_none(run: Callable[[], None]) -> None:
    assert rows(run) == []


def test_the_line_of_the_backward_is_told() -> None:
    (row,) = rows(summed)
    assert row["backward"][0]["line"] == summed.__code__.co_firstlineno + 5


def raises_at_the_end(number: int) -> Any:
    if number == 3:
        raise MemoryError
    return Loss()


def ended() -> None:
    losses = []
    for number in range(5):
        losses.append(raises_at_the_end(number))  # noqa: PERF401 - as it is written
    total: Any = sum(losses)
    total.backward()


def test_calls_that_an_exception_has_ended_are_told_by_its_traceback() -> None:
    try:
        ended()
    except MemoryError as error:
        found = stacks.describe(error)["gathering"]
    assert [row["at"]["name"] for row in found] == ["ended"]


def test_where_the_thread_is_not_the_programs_nothing_is_looked_for() -> None:
    assert stacks.describe(is_programs=False)["gathering"] == []
