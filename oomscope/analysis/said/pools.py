"""What each private pool holds: those of CUDA graphs, and the program's own."""

from __future__ import annotations

from collections import defaultdict

from oomscope.analysis.memory.records import Fragmentation, PoolUse
from oomscope.analysis.said.records import PoolFigures
from oomscope.model import PoolId, Snapshot

_DEFAULT = (0, 0)
_PEAK = "reserved_bytes_by_private_pools.{}_{}.all.peak"
"""As `torch.cuda.memory_stats` flattens it (torch 2.15)."""


def pool_figures(snapshot: Snapshot, device: int, fragmentation: Fragmentation) -> tuple[PoolFigures, ...]:
    """The private pools that hold memory at the instant of `fragmentation`, largest first."""
    uses: dict[PoolId, list[PoolUse]] = defaultdict(list)
    for use in fragmentation.by_pool:
        if use.pool != _DEFAULT:
            uses[use.pool].append(use)
    stats = snapshot.recorded.device(device).memory_stats
    found = [
        PoolFigures(
            pool=pool,
            kind=snapshot.recorded.pool_kind(pool),
            name=snapshot.recorded.pool_name(pool),
            segments=sum(use.segments for use in rows),
            reserved=sum(use.reserved for use in rows),
            active=sum(use.active for use in rows),
            inactive=sum(use.inactive for use in rows),
            largest_inactive=max(use.largest_inactive for use in rows),
            peak_reserved=stats.get(_PEAK.format(*pool)),
        )
        for pool, rows in uses.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.reserved))
