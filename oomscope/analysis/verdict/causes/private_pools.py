"""Private pools: free bytes are walled in a pool of CUDA graphs or a `MemPool`, where the request may not go."""

from __future__ import annotations

from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.piled import MOSTLY
from oomscope.analysis.verdict.shortage import Shortage, Tested
from oomscope.model import Note, note

SLUG = "private_pools"
DECIDING = ("request", "walled", "usable")
REMEDIES = ("let_pool_go", "share_graph_pool", "raise_cap")
LOOKS_LIKE = ("holes_within_the_pool",)


def withheld(case: Shortage) -> int:
    """Free bytes of other pools."""
    return case.free.walled


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where one piece behind the wall would have served the request."""
    return clauses.doubt_of_wall(circumstances, tested, circumstances.request.free.walled_piece)


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """How much is walled, and that the request would have fitted."""
    request = circumstances.request
    pools = len({pool for pool in request.layout.segments.pool.tolist() if pool != 0})
    code = "causes.private_pools" if tested.certain else "causes.private_pools_closely"
    found = [note(code, walled=request.free.walled, pools=pools, size=request.size)]
    walls = circumstances.walls
    if len(walls) > 1 and walls[0].name is not None and walls[0].free >= MOSTLY * request.free.walled:
        found.append(note("causes.private_pools.most", free=walls[0].free, name=walls[0].name, kind=walls[0].kind))
    return tuple(found)


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """The free bytes behind the walls, with what is left, are as much as was asked for."""
    del circumstances
    return tested.qualifying[0].spare >= 0
