"""What the optimizer keeps from step to step."""

from __future__ import annotations

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray

SLUG = "optimizer_state"
CATEGORIES = (kinds.OPTIMIZER_STATE,)
BECOMES = None
EVIDENCE = ("allocated_in_an_optimizer_step_and_outlives_it", "as_many_times_the_model_as_are_left")
LOOKS_LIKE = ("optimizer_temporaries", "gradients")


def find(live: LiveBlocks) -> BoolArray:
    """Optimizer state."""
    return live.of(*CATEGORIES)
