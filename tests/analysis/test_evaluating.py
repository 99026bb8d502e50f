"""Stacks that stand in a library's own evaluation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from oomscope.analysis.labels.evaluating import evaluates
from oomscope.model import NO_STACK, Frame


def standing_in(file: str, function: str) -> Any:
    """A snapshot whose only stack leads through `function`."""
    return SimpleNamespace(
        stacks=[(Frame("model.py", 8, "forward"), Frame(file, 9, function), Frame("run.py", 3, "main"))]
    )


@pytest.mark.parametrize(
    ("file", "function", "is_one"),
    [
        ("/venv/transformers/trainer.py", "evaluation_loop", True),
        ("C:\\venv\\transformers\\trainer.py", "prediction_loop", True),
        ("/venv/transformers/trainer.py", "training_step", False),
        ("/venv/transformers/generation/utils.py", "generate", True),
        ("/venv/pytorch_lightning/loops/evaluation_loop.py", "_evaluation_step", True),
        ("/venv/lightning/pytorch/loops/prediction_loop.py", "_predict_step", True),
        ("/venv/pytorch_lightning/loops/fit_loop.py", "advance", False),
        ("/home/ada/trainer.py", "evaluation_loop", False),
    ],
)
def test_a_librarys_evaluation_is_known_by_its_functions(file: str, function: str, is_one: bool) -> None:
    assert evaluates(standing_in(file, function), 0) is is_one
    assert not evaluates(standing_in(file, function), NO_STACK)
