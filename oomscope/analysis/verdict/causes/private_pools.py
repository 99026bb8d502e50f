"""Private pools: free bytes are walled in a pool of CUDA graphs or a `MemPool`, where the request may not go."""

from __future__ import annotations

from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.piled import LEAST_PASSES, MOSTLY
from oomscope.analysis.verdict.shortage import Shortage, Tested
from oomscope.model import Note, note

SLUG = "private_pools"
DECIDING = ("request", "walled", "usable")
REMEDIES = ("let_pool_go", "share_graph_pool", "raise_cap")
LOOKS_LIKE = ("holes_within_the_pool", "growth")

MOST_SIZES = 16
"""Pools. A program that captures a graph for each size it is to run has fewer sizes; one for each request that comes
has no end."""


def withheld(case: Shortage) -> int:
    """Free bytes of other pools."""
    return case.free.walled


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where one piece behind the wall would have served the request, and no pass needs another pool."""
    if _pools(circumstances) > MOST_SIZES and _each_pass(circumstances):
        return note("doubts.another_each_pass")
    return clauses.doubt_of_wall(circumstances, tested, circumstances.request.free.walled_piece)


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """How much is walled, and that the request would have fitted."""
    request = circumstances.request
    pools = _pools(circumstances)
    code = "causes.private_pools" if tested.certain else "causes.private_pools_closely"
    found = [note(code, walled=request.free.walled, pools=pools, size=request.size)]
    walls = circumstances.walls
    if len(walls) > 1 and walls[0].name is not None and walls[0].free >= MOSTLY * request.free.walled:
        found.append(note("causes.private_pools.most", free=walls[0].free, name=walls[0].name, kind=walls[0].kind))
    return (*found, *_each_pass(circumstances))


def _pools(circumstances: Circumstances) -> int:
    """How many private pools there were."""
    return len({pool for pool in circumstances.request.layout.segments.pool.tolist() if pool != 0})


def _each_pass(circumstances: Circumstances) -> tuple[Note, ...]:
    """That the loop which failed has made the pools, one a pass; nothing where it has not, or made a few."""
    known, pools = circumstances.failing_pass, _pools(circumstances)
    if known is None or pools < LEAST_PASSES or abs(known.finished - pools) > 1:
        return ()
    return (note("causes.private_pools.each_pass", passes=known.finished, loop=known.loop),)


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """The free bytes behind the walls, with what is left, are as much as was asked for."""
    del circumstances
    return tested.qualifying[0].spare >= 0
