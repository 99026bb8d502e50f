"""What nothing tells."""

from __future__ import annotations

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray

SLUG = "unknown"
CATEGORIES = (kinds.UNKNOWN,)
BECOMES = None
EVIDENCE = ("no_stack_or_phase_that_tells",)
LOOKS_LIKE = ("data_set_on_the_card", "model_from_before_the_recording")


def find(live: LiveBlocks) -> BoolArray:
    """All that has no category."""
    return live.of(*CATEGORIES)
