"""Activation checkpointing: what a block saves for its backward is made again instead."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.causes.capacity import fills_an_object
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "checkpoint_activations"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where a training keeps activations and does not checkpoint yet."""
    if not circumstances.trains or circumstances.asked.phase == "optimizer" or _follows_it(circumstances):
        return
    if fills_an_object(circumstances):
        return  # most of it is kept by that, and not for a backward
    yield from shrink(circumstances, SLUG, "activations", None)


def _follows_it(circumstances: Circumstances) -> bool:
    frames = circumstances.study.snapshot.stacks.frames
    return any(frame.filename.replace("\\", "/").endswith("torch/utils/checkpoint.py") for frame in frames)
