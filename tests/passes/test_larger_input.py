"""The variable with which a pass became larger than those before it, on real captures."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import larger_input as rules
from oomscope.analysis.passes.records import LargerInput
from oomscope.wording import say
from tests.verdict.known import PROGRAMS, found


def told(name: str) -> LargerInput | None:
    device = found(PROGRAMS / f"{name}.pickle.xz", with_key=True)
    assert device.oom is not None
    assert device.oom.verdict.failing_pass is not None
    return device.oom.verdict.failing_pass.input


@pytest.mark.parametrize(
    ("name", "variable", "shape", "ratio", "is_own"),
    [
        ("maml_fewshot", "MAML.meta_step: support[0]", (20, 5, 3, 84, 84), 4.0, True),  # of what one line takes in
        ("sac_pixels", "Agent.update: obs", (1536, 9, 84, 84), 6.0, False),  # of the function that is called there
        ("satellite", "satellite.py: picture", (1, 3, 3900, 3900), 9.0, True),  # of a script without functions
        ("target_net", "main: rows", (24576,), 24.0, True),
    ],
)
def test_the_variable_is_told_with_its_shape(
    name: str, variable: str, shape: tuple[int, ...], ratio: float, is_own: bool
) -> None:
    one = told(name)
    assert one is not None
    assert (one.variable, one.shape, one.is_own) == (variable, shape, is_own)
    assert one.ratio == pytest.approx(ratio, rel=0.001)


@pytest.mark.parametrize("name", ["weather_lstm"])
def test_without_a_variable_of_the_program_there_is_none(name: str) -> None:
    assert told(name) is None


def test_what_is_hardly_larger_than_the_largest_before_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    device = found(PROGRAMS / "target_net.pickle.xz", with_key=True)
    assert device.oom is not None
    failing = device.oom.verdict.failing_pass
    run = next(one for one in device.study.loops.runs if device.study.loops.location(one) == (failing and failing.loop))
    asked = (device.study, run, device.oom.entry, failing and failing.began_at)
    assert rules.larger_input(*asked) is not None
    monkeypatch.setattr(rules, "NO_LONGER", 24.1)
    assert rules.larger_input(*asked) is None


def test_it_is_said_with_its_shape() -> None:
    device = found(PROGRAMS / "sac_pixels.pickle.xz", with_key=True)
    assert device.oom is not None
    first = say(device.oom.verdict.headline[0])
    assert first == (
        "`obs` (in Agent.update) is 1,536 × 9 × 84 × 84 in this pass, 6 × as large as in any of the 220 that fitted."
    )
