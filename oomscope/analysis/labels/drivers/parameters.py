"""The model itself, with its buffers."""

from __future__ import annotations

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray

SLUG = "parameters"
CATEGORIES = (kinds.PARAMETER, kinds.BUFFER)
BECOMES = None
EVIDENCE = ("allocated_while_a_model_was_made_moved_or_loaded", "as_large_as_gradients")
LOOKS_LIKE = ("duplicate_model", "kv_cache")


def find(live: LiveBlocks) -> BoolArray:
    """Parameters and buffers."""
    return live.of(*CATEGORIES)
