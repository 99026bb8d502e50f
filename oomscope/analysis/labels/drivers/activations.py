"""What the passes underway make: for their backward, or for a moment."""

from __future__ import annotations

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray

SLUG = "activations"
CATEGORIES = (kinds.ACTIVATION, kinds.TEMPORARY, kinds.INPUT)
BECOMES = None
EVIDENCE = ("allocated_in_a_forward_or_backward", "alive_until_its_backward")
LOOKS_LIKE = ("retained_graph", "accumulated_tensors", "kv_cache")


def find(live: LiveBlocks) -> BoolArray:
    """Activations, temporaries and the batch."""
    return live.of(*CATEGORIES)
