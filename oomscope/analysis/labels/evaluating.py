"""Stacks that stand in a library's own evaluation, prediction or generation: no backward follows."""

from __future__ import annotations

import re

from oomscope.model import NO_STACK, Snapshot

_GATHERS = re.compile(r"transformers/trainer\.py:evaluation_loop\Z")
"""The Trainer's method that joins predictions to ever larger tensors, ``all_preds`` and ``all_labels``."""
_UPDATES = re.compile(r"torchmetrics/metric\.py:")
"""The wrapper that calls a metric's ``update``."""
_LIGHTNING = r"(?:pytorch_lightning|lightning/pytorch)"
_WORK = {
    "sanity_check": re.compile(rf"{_LIGHTNING}/trainer/trainer\.py:_run_sanity_check\Z"),
    "evaluation": re.compile(
        r"transformers/trainer\w*\.py:(?:evaluate|evaluation_loop|prediction_loop)\Z"
        rf"|{_LIGHTNING}/loops/evaluation_loop\.py:"
    ),
    "prediction": re.compile(rf"transformers/trainer\w*\.py:predict\Z|{_LIGHTNING}/loops/prediction_loop\.py:"),
    "encoding": re.compile(r"sentence_transformers/\w+\.py:encode\Z"),
    "generation": re.compile(r"transformers/generation/utils\.py:generate\Z"),
}
"""Kinds of a library's work, by the function that does it."""


def work_of_library(snapshot: Snapshot, stack: int) -> tuple[str, ...]:
    """What a library does where `stack` stands, the outermost first: ``("evaluation", "generation")``."""
    frames = snapshot.stacks[stack] if stack != NO_STACK else ()
    places = [f"{frame.filename}:{frame.name}".replace("\\", "/") for frame in reversed(frames)]
    found = [kind for place in places for kind, pattern in _WORK.items() if pattern.search(place)]
    kinds = tuple(dict.fromkeys(found))
    return tuple(kind for kind in kinds if kind != "evaluation") if "sanity_check" in kinds else kinds


def evaluates(snapshot: Snapshot, stack: int) -> bool:
    """Whether `stack` stands in work of a library's that no backward follows."""
    return bool(work_of_library(snapshot, stack))


def gathers_predictions(snapshot: Snapshot, stack: int) -> bool:
    """Whether `stack` stands in the evaluation that gathers what it predicts."""
    return _stands_in(_GATHERS, snapshot, stack)


def updates_metric(snapshot: Snapshot, stack: int) -> bool:
    """Whether `stack` stands in a call of a metric of torchmetrics."""
    return _stands_in(_UPDATES, snapshot, stack)


def _stands_in(pattern: re.Pattern[str], snapshot: Snapshot, stack: int) -> bool:
    frames = snapshot.stacks[stack] if stack != NO_STACK else ()
    return any(pattern.search(f"{frame.filename}:{frame.name}".replace("\\", "/")) for frame in frames)
