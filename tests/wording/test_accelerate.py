"""The call that lets go of what accelerate keeps."""

from __future__ import annotations

import pytest

from oomscope.wording.accelerate import free_memory
from oomscope.wording.remedies import REMEDIES


@pytest.mark.parametrize(
    ("holder", "call"),
    [
        ("accelerator._models", "accelerator.free_memory()"),
        ("main: self.accelerator._optimizers", "self.accelerator.free_memory()"),
        ("accelerator.state", None),
        ("main: models", None),
        (None, None),
    ],
)
def test_what_an_accelerator_has_prepared_is_let_go_of_by_its_own_call(holder: str | None, call: str | None) -> None:
    assert free_memory(holder) == call


@pytest.mark.parametrize(
    ("holder", "begin"),
    [
        ("accelerator._models", "Call `accelerator.free_memory()` at the end of each pass: it lets go of"),
        ("main: models", "Store numbers, or a `state_dict()` on the CPU, in `models`"),
    ],
)
def test_models_that_pile_up_are_let_go_of_where_they_are_kept(holder: str, begin: str) -> None:
    action = REMEDIES["bound_what_is_kept.models"].action
    assert callable(action)
    assert action({"holder": holder}).startswith(begin)
