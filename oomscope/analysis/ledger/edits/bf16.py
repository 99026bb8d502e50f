"""The model in bf16: weights, gradients, states and activations half as large."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from oomscope.analysis.labels.kinds import INPUT, WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.attention import scores_of_fused, written_by_torch
from oomscope.analysis.ledger.casts import is_mixed, is_of_unknown_width
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.mixed import casts_weights, without_autocast
from oomscope.analysis.ledger.precision import embeds, only_full
from oomscope.analysis.ledger.promotion import promoted
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.whole_numbers import whole_numbers
from oomscope.analysis.plan.reductions import made_to_add_up
from oomscope.analysis.plan.scaling import workspaces
from oomscope.model import BoolArray, Frame, FrameKind, frame_kind, package_path
from oomscope.model.ordering import among, ascending
from oomscope.model.recorded_stacks import RecordedSource

SLUG = "bf16"
_CASTS = re.compile(r"\.float\(\)|float32")
LEAST = 1 << 20
"""Bytes of a loss over many classes."""
FLAG = 64
"""Bytes up to which something is a counter or a flag."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """Everything but workspaces, counters and tokens is half as large.

    A loss may still be computed in float32, as its line says where the recording has that, and attention that no fused
    kernel took may find one in 16 bits.
    """
    if is_of_unknown_width(run) or not run.parameters.any():
        return None
    if is_mixed(run):
        return _of_mixed(run)
    half = ~run.of(WORKSPACE) & (run.size > FLAG) & ~_tokens(run) & ~only_full(run)
    half &= ~whole_numbers(run) & ~promoted(run) & ~written_by_torch(run)
    # Sums are float32 until they are done.
    half &= ~made_to_add_up(run.recording.program)
    drafts = [run.draft.scaled(0.5, half), run.draft.scaled(0.5, half & ~_in_full(run))]
    if _is_cast_for_loss(run):
        drafts.reverse()
    likely, other = drafts
    # Kernels for convolutions may copy what they are given into float32.
    copying = run.draft.scaled(0.5, half & ~workspaces(run.recording))
    return Edited(likely, (other, likely.without(scores_of_fused(run)), copying), doubt=0.04)


def _of_mixed(run: Run) -> Edited | None:
    """A program that runs under autocast keeps its weights in 16 bits instead."""
    if not casts_weights(run):
        return None
    likely, *others = without_autocast(run)
    return Edited(likely, tuple(others), doubt=0.08)


def _is_cast_for_loss(run: Run) -> bool:
    """Whether a line that calls a loss writes that it casts what it gives to it."""
    sources = run.study.snapshot.recorded.sources
    texts = {(one.filename, one.line): one.text[one.line - one.first] for one in sources if _holds(one)}
    stacks = run.study.snapshot.stacks
    lines = [_calling_line(stacks[one]) for one in ascending(run.stack[losses(run)]).tolist() if one >= 0]
    return any(line is not None and _CASTS.search(texts.get(line, "")) for line in lines)


def _holds(source: RecordedSource) -> bool:
    return 0 <= source.line - source.first < len(source.text)


def _calling_line(frames: Sequence[Frame]) -> tuple[str, int] | None:
    """The innermost line of a stack outside torch."""
    own = (one for one in frames if frame_kind(one.filename) is not FrameKind.CPP and not _of_torch(one))
    return next(((frame.filename, frame.line) for frame in own), None)


def _of_torch(frame: Frame) -> bool:
    return (package_path(frame.filename) or "").startswith("torch/")


def _in_full(run: Run) -> BoolArray:
    """What a loss makes and the backward of it, where a program casts logits for it; that cast is none before."""
    loss = losses(run)
    large = loss & (run.size >= LEAST)
    sizes = run.size[large & (run.size == run.size[large].max(initial=0))]
    back = run.during(BACKWARD) & among(run.size, sizes) & ~run.gradients & ~run.like_parameter
    return np.asarray(loss | back)


def _tokens(run: Run) -> BoolArray:
    """Inputs of a model that begins with an embedding are whole numbers."""
    return run.of(INPUT) if embeds(run) else np.zeros(len(run.size), np.bool_)
