"""Stacks in which one of torch's optimizers updates parameters by an implementation that is not fused.

``_multi_tensor_adamw`` (foreach) makes temporaries as large as all parameters, ``_single_tensor_adamw`` as large as one
after the other; the fused kernels update in place (torch/optim/adamw.py and its neighbours).
"""

from __future__ import annotations

import re

from oomscope.model import NO_STACK, Snapshot

_UNFUSED = re.compile(r"^_(?:multi|single)_tensor_(\w+)$")
_FOLDER = "torch/optim/"
FUSED = frozenset({"adam", "adamw", "sgd", "adagrad"})
"""The optimizers that have a fused implementation as well, by torch's names of their functions."""


def unfused_optimizer(snapshot: Snapshot, stack: int) -> str | None:
    """The optimizer, ``adamw``, in whose update `stack` stands; None outside of any, or in a fused one."""
    frames = snapshot.stacks[stack] if stack != NO_STACK else ()
    found = (_UNFUSED.match(frame.name) for frame in frames if _FOLDER in frame.filename.replace("\\", "/"))
    return next((match[1] for match in found if match), None)
