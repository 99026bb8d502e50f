"""Stacks that stand in a library's own evaluation, prediction or generation: no backward follows."""

from __future__ import annotations

import re

from oomscope.model import NO_STACK, Snapshot

_EVALUATES = re.compile(
    r"transformers/trainer\.py:(?:evaluation_loop|prediction_loop)"
    r"|transformers/generation/utils\.py:generate"
    r"|(?:pytorch_lightning|lightning/pytorch)/loops/(?:evaluation|prediction)_loop\.py:.*"
)
"""Files and functions: of transformers' Trainer and `generate`, and of Lightning's loops."""


def evaluates(snapshot: Snapshot, stack: int) -> bool:
    """Whether `stack` stands in an evaluation that a library runs."""
    frames = snapshot.stacks[stack] if stack != NO_STACK else ()
    return any(_EVALUATES.search(f"{frame.filename}:{frame.name}".replace("\\", "/")) for frame in frames)
