"""Which calls of blocks are made again: those of an evaluation as well, or of training only.

An evaluation that keeps its graph shows what its blocks leave, but not what the model would do with checkpointing on.
How such models are written does. transformers and most models of text and of sound ask for it in training only,
``if self.gradient_checkpointing and self.training``; models of images, as torchvision's users, timm and Swin write
them, do not ask whether they train. So it was in 24 of 32 programs whose peak tells: ten of fourteen models of images
did not ask, fourteen of eighteen others did (an H200, torch 2.11). What the other way comes to is said as well. A copy
of a model that a loss is given as a reference is in evaluation, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.graphs.never_backward import evaluations, never_backward
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import Block
from oomscope.model import BoolArray, package_path

LAST_LINE_OF_CONV1D = 400
"""Of torch/nn/modules/conv.py: Conv1d convolves at lines 299 to 380, Conv2d from 451 on, in torch 2.0 to 2.14."""
EVALUATED = 0.5
"""Of what a block leaves to a backward: where an evaluation keeps more, it has called the block."""
WITH_A_COPY = 0.6
"""Of the bytes of parameters: where fewer have gradients, there is another model, as large, that is not trained."""
_ASKS_WHETHER_IT_TRAINS = re.compile(r"^transformers/")


def made_again(run: Run, found: Sequence[Block]) -> list[Block]:
    """Those of the calls `found` that are made again."""
    return list(found) if in_evaluations_too(run, found) else in_training(run, found)


def in_evaluations_too(run: Run, found: Sequence[Block]) -> bool:
    """Whether blocks are taken to be made again in an evaluation that keeps its graph as well."""
    return bool(found) and _is_of_images(run) and not _is_of_transformers(run, found[0])


def in_training(run: Run, found: Sequence[Block]) -> list[Block]:
    """Those of the calls `found` that no evaluation made."""
    kept = _kept(run)
    return [
        block
        for block in found
        if run.size[block.inner[kept[block.inner]]].sum() <= EVALUATED * run.size[block.inner].sum()
    ]


def _kept(run: Run) -> BoolArray:
    """bool[requests]: the graphs of evaluations, and of a copy of the model that is not trained, as a reference is."""
    if _has_a_copy(run):
        return never_backward(run)
    found = np.zeros(len(run.size), np.bool_)
    for rows in evaluations(run):
        found[rows] = True
    return found


def _has_a_copy(run: Run) -> bool:
    """Whether another model is there, as large, that is not trained. Each step may train another part, as of a GAN."""
    begins = run.own_begins[run.own_begins < NEVER]
    there = run.parameters & (run.begin <= begins.max(initial=0)) & (run.end > begins.max(initial=0))
    trained: Counter[int] = Counter()
    for step in range(run.steps):
        trained |= Counter(run.size[run.gradients & (run.step == step)].tolist())
    every = int(run.size[there].sum())
    return 0 < sum(size * count for size, count in trained.items()) < WITH_A_COPY * every


def _is_of_images(run: Run) -> bool:
    """Whether a program has layers that convolve images or volumes, and none that convolve anything else."""
    lines = {
        frame.line
        for frame in run.study.snapshot.stacks.frames
        if frame.name == "_conv_forward" and package_path(frame.filename) == "torch/nn/modules/conv.py"
    }
    return min(lines, default=0) > LAST_LINE_OF_CONV1D


def _is_of_transformers(run: Run, block: Block) -> bool:
    files = (package_path(frame.filename) or "" for frame in run.study.snapshot.stacks[int(run.stack[block.rows[0]])])
    return any(map(_ASKS_WHETHER_IT_TRAINS.match, files))
