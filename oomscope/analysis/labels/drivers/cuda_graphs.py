"""What lies in the private pools of CUDA graphs: results, intermediates and workspaces that a replay writes again."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray

SLUG = "cuda_graphs"
CATEGORIES = (kinds.ACTIVATION, kinds.TEMPORARY, kinds.WORKSPACE, kinds.INPUT, kinds.UNKNOWN)
BECOMES = None
EVIDENCE = ("lies_in_the_private_pool_of_a_graph",)
LOOKS_LIKE = ("memory_of_a_mempool",)


def find(live: LiveBlocks) -> BoolArray:
    """The live blocks in pools that graphs hold; a `MemPool` is the program's own."""
    snapshot = live.study.snapshot
    theirs = [
        number
        for number, pool in enumerate(snapshot.pools)
        if number and snapshot.recorded.pool_kind(pool) == "graph"
    ]  # fmt: skip
    return np.isin(live.pool, theirs) if theirs else live.none()
