"""Predictions of an evaluation that transformers' Trainer gathers on the GPU until its end."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.model import NO_STACK

SLUG = "accumulate_predictions"

_LOOP = "evaluation_loop"
"""The Trainer's method; ``all_preds`` and ``all_labels`` of it are what is joined to (transformers/trainer.py)."""
_KEPT = f"Trainer.{_LOOP}: all_"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where its evaluation loop joins them to ever larger tensors, or keeps the most of all that grows."""
    piled, rising = circumstances.piled, circumstances.rising
    holder = piled.holder.holder if piled.holder is not None else ""
    if rising is None and not holder.startswith(_KEPT):
        return
    if not (holder.startswith(_KEPT) or _in_evaluation(circumstances)):
        return
    saves = max(rising.live if rising is not None else 0, piled.holder.earlier_bytes if piled.holder is not None else 0)
    yield Advice(SLUG, {"bytes": saves}, saves, enough_by_sum(circumstances, saves))


def _in_evaluation(circumstances: Circumstances) -> bool:
    study = circumstances.study
    stack = int(study.history.trace.stack[circumstances.request.entry])
    frames = study.snapshot.stacks[stack] if stack != NO_STACK else ()
    return any(
        frame.name == _LOOP and frame.filename.replace("\\", "/").endswith("transformers/trainer.py")
        for frame in frames
    )
