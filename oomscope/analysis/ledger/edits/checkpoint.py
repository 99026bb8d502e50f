"""Activation checkpointing: a block keeps its input only, and its backward makes the rest again."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.ledger.blocks import blocks
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run

SLUG = "checkpoint"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """What is saved between a block's forward and its backward is dropped, and made again when that backward begins."""
    if not run.trains or _follows_it(run):
        return None
    found = blocks(run)
    if not found:
        return None
    rows = np.concatenate([block.inner for block in found])
    count = [len(block.inner) for block in found]
    dropped = np.repeat(np.array([block.end for block in found], np.int64), count)
    again = np.repeat(np.array([int(run.end[block.inner].min()) - 1 for block in found], np.int64), count)
    used = run.end[rows] < NEVER
    draft = run.draft.lasting(rows, end=dropped)
    again_made = draft.added(run.size[rows[used]], again[used], run.end[rows[used]], rows[used])
    return Edited(again_made, doubt=0.08)


def _follows_it(run: Run) -> bool:
    frames = run.study.snapshot.stacks.frames
    return any(frame.filename.replace("\\", "/").endswith("torch/utils/checkpoint.py") for frame in frames)
