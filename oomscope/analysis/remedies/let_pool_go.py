"""Let go of a `MemPool` that holds little but free memory: only with it goes that memory back to the card."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "let_pool_go"
LEAST_SHARE = 0.1
"""Of the free bytes behind walls; what less would give back is not worth a pool."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """For the pool of the program's own that would give back most."""
    pools = [wall for wall in circumstances.walls if wall.kind == "mempool" and wall.whole]
    largest = max(pools, key=lambda wall: wall.whole, default=None)
    if largest is None or largest.whole < LEAST_SHARE * circumstances.request.free.walled:
        return
    values = {"name": largest.name, "number": list(largest.pool), "bytes": largest.whole}
    yield Advice(SLUG, values, largest.whole, enough_by_sum(circumstances, largest.whole))
