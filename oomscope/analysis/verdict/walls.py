"""Which private pools held the free bytes that a failed request was not allowed to use."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.memory.fragmentation import free_bytes
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.failed_requests import FailedRequest, pool_of
from oomscope.frozen import frozen
from oomscope.model import PoolId
from oomscope.model.ordering import ascending


@frozen
class Wall:
    """One private pool with free bytes.

    Attributes:
        pool: torch's id.
        name: what the program calls it, where the recording knows.
        kind: ``graph`` or ``mempool``.
        free: bytes that are free in it.
        whole: those of them in segments where nothing is alive: what goes back to the device with the pool.
    """

    pool: PoolId
    name: str | None
    kind: str
    free: int
    whole: int


def find_walls(study: DeviceStudy, request: FailedRequest) -> tuple[Wall, ...]:
    """The private pools with free bytes besides the request's own, the one with the most first."""
    snapshot, layout = study.snapshot, request.layout
    segments, of = layout.segments, layout.blocks.segment
    free = free_bytes(layout, study.history.config).inactive
    in_segment = np.zeros(len(segments), np.int64)
    np.add.at(in_segment, of, free)
    found = []
    for number in ascending(segments.pool).tolist():
        inside = segments.pool == number
        if number in (0, pool_of(study.history, request.entry)) or not in_segment[inside].any():
            continue
        pool = snapshot.pools[number]
        recorded = snapshot.recorded
        whole = int(in_segment[inside & (in_segment == segments.total_size)].sum())
        found.append(
            Wall(pool, recorded.pool_name(pool), recorded.pool_kind(pool), int(in_segment[inside].sum()), whole)
        )
    return tuple(sorted(found, key=lambda wall: -wall.free))
