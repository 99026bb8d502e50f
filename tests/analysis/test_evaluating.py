"""Stacks that stand in a library's own evaluation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from oomscope.analysis.labels.evaluating import evaluates, work_of_library
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


LIGHTNING = "/venv/pytorch_lightning"


@pytest.mark.parametrize(
    ("places", "kinds"),
    [
        ([("/venv/transformers/generation/utils.py", "generate")], ("generation",)),
        (
            [
                ("/venv/transformers/generation/utils.py", "generate"),
                ("/venv/transformers/trainer_seq2seq.py", "prediction_step"),
                ("/venv/transformers/trainer.py", "evaluation_loop"),
                ("/venv/transformers/trainer.py", "evaluate"),
                ("/venv/transformers/trainer_seq2seq.py", "evaluate"),
            ],
            ("evaluation", "generation"),
        ),
        ([(f"{LIGHTNING}/loops/evaluation_loop.py", "run")], ("evaluation",)),
        (
            [
                (f"{LIGHTNING}/loops/evaluation_loop.py", "run"),
                (f"{LIGHTNING}/trainer/trainer.py", "_run_sanity_check"),
            ],
            ("sanity_check",),
        ),
        ([("/venv/lightning/pytorch/loops/prediction_loop.py", "run")], ("prediction",)),
        ([("/venv/sentence_transformers/SentenceTransformer.py", "encode")], ("encoding",)),
        ([("/home/ada/utils.py", "generate"), ("/home/ada/train.py", "evaluate")], ()),
    ],
)
def test_what_a_library_does_is_told_from_the_outside(places: list[tuple[str, str]], kinds: tuple[str, ...]) -> None:
    stack = (
        Frame("model.py", 8, "forward"),
        *(Frame(file, 9, name) for file, name in places),
        Frame("a.py", 3, "main"),
    )
    snapshot: Any = SimpleNamespace(stacks=[stack])
    assert work_of_library(snapshot, 0) == kinds
    assert work_of_library(snapshot, NO_STACK) == ()
