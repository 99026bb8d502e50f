"""What an optimizer's step makes and drops."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.phases import OPTIMIZER
from oomscope.model import BoolArray

SLUG = "optimizer_temporaries"
CATEGORIES = (kinds.TEMPORARY, kinds.UNKNOWN)
BECOMES = kinds.TEMPORARY
EVIDENCE = ("allocated_in_an_optimizer_step_and_dropped_in_it",)
LOOKS_LIKE = ("optimizer_state",)


def find(live: LiveBlocks) -> BoolArray:
    """What the optimizer allocated and no step has left behind."""
    return np.asarray(live.phase == OPTIMIZER)
