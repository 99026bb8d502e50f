"""One memory pool for CUDA graphs that are not replayed at the same time."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "share_graph_pool"
LEAST_SHARE = 0.1
"""Of the free bytes behind walls; where less is in pools of graphs, graphs are not the matter."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where free bytes are walled in pools of graphs."""
    walled = sum(wall.free for wall in circumstances.walls if wall.kind == "graph")
    if walled and walled >= LEAST_SHARE * circumstances.request.free.walled:
        yield Advice(SLUG, {}, walled, enough_by_sum(circumstances, walled))
