"""One memory pool for CUDA graphs that are not replayed at the same time."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "share_graph_pool"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where free bytes are walled in pools of graphs."""
    walled = sum(wall.free for wall in circumstances.walls if wall.kind == "graph")
    if walled:
        yield Advice(SLUG, {}, walled, enough_by_sum(circumstances, walled))
