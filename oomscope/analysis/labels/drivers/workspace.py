"""Workspaces of libraries, and buffers for communication."""

from __future__ import annotations

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray

SLUG = "workspace"
CATEGORIES = (kinds.WORKSPACE,)
BECOMES = None
EVIDENCE = ("size_of_a_cublas_workspace", "allocated_by_ddp_fsdp_or_a_collective")
LOOKS_LIKE = ("activation_of_the_same_size",)


def find(live: LiveBlocks) -> BoolArray:
    """Workspaces."""
    return live.of(*CATEGORIES)
