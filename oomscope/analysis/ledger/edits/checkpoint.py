"""Activation checkpointing: a block keeps its input only, and its backward makes the rest again."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.ledger.blocks import Block, blocks
from oomscope.analysis.ledger.draft import NEVER, Draft
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
    draft = run.draft
    for block in found:
        draft = _dropped(run, draft, block)
    return Edited(draft, doubt=0.08)


def _dropped(run: Run, draft: Draft, block: Block) -> Draft:
    rows = block.inner
    if not len(rows):
        return draft
    again = int(run.end[rows].min()) - 1
    ends, used = draft.end[rows], run.end[rows] < NEVER
    draft = draft.lasting(rows, end=np.full(len(rows), block.end, np.int64))
    return draft.added(draft.size[rows[used]], np.full(int(used.sum()), again, np.int64), ends[used])


def _follows_it(run: Run) -> bool:
    frames = run.study.snapshot.stacks.frames
    return any(frame.filename.replace("\\", "/").endswith("torch/utils/checkpoint.py") for frame in frames)
