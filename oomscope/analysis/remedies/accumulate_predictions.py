"""Predictions of an evaluation that transformers' Trainer gathers on the GPU until its end."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.labels.evaluating import gathers_predictions
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "accumulate_predictions"

_KEPT = "Trainer.evaluation_loop: all_"
"""How the recorder names what it gathers: ``all_preds``, ``all_labels``."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where its evaluation loop joins them to ever larger tensors, or keeps the most of all that grows."""
    keeper, rising = circumstances.piled.holder, circumstances.rising
    saves = 0
    if keeper is not None and keeper.holder.startswith(_KEPT):
        saves = keeper.earlier_bytes
    if rising is not None and _is_gathered(circumstances):
        saves = max(saves, rising.live)
    if saves:
        yield Advice(SLUG, {"bytes": saves}, saves, enough_by_sum(circumstances, saves))


def _is_gathered(circumstances: Circumstances) -> bool:
    study = circumstances.study
    return gathers_predictions(study.snapshot, int(study.history.trace.stack[circumstances.request.entry]))
