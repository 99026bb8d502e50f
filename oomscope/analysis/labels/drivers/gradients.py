"""Gradients of parameters."""

from __future__ import annotations

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray

SLUG = "gradients"
CATEGORIES = (kinds.GRADIENT,)
BECOMES = None
EVIDENCE = ("allocated_in_a_backward_and_outlives_it", "as_large_as_a_parameter")
LOOKS_LIKE = ("optimizer_state", "communication_bucket")


def find(live: LiveBlocks) -> BoolArray:
    """Gradients."""
    return live.of(*CATEGORIES)
