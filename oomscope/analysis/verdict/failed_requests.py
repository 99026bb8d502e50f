"""The requests that failed, and which of them matters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.allocator import allocation_size
from oomscope.analysis.attribution.sites import SiteTable, stack_text
from oomscope.analysis.memory.free_for_request import free_for_request
from oomscope.analysis.memory.records import FreeForRequest, Totals
from oomscope.analysis.memory.usage import totals_at
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.limits import limit_at
from oomscope.analysis.verdict.records import Oom, ProcessLimit
from oomscope.analysis.verdict.told_by_exception import failed_as_told, told_by_exception
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import NO_STACK, Action, Layout, Snapshot

MOST_JUDGED = 8
"""Retry loops fail hundreds of times; the last ones of a device are judged, the one that matters among them."""


@frozen(eq=False)
class FailedRequest:
    """One `OOM` entry with the state of the allocator at that very instant."""

    entry: int
    time_us: int | None
    size: int
    alloc_size: int
    device_free: int | None
    stream: int
    recovered: bool
    site: Location | None
    caller: Location | None
    stack: tuple[str, ...]
    limit: ProcessLimit
    totals: Totals
    free: FreeForRequest
    layout: Layout


def failed_requests(study: DeviceStudy) -> tuple[FailedRequest, ...]:
    """The last failed requests of a device, in order."""
    snapshot, history, sites = study.snapshot, study.history, study.sites
    entries = history.trace.entries(Action.OOM)
    allocations = history.trace.entries(Action.ALLOC)
    part = study.part
    if part is not None and part.allocates_later:
        last_allocation = history.entries
    else:
        last_allocation = int(allocations[-1]) if len(allocations) else -1
    judged = entries[-MOST_JUDGED:].tolist()
    # In a program with threads the others go on while the error that ends it is on its way.
    message = told_by_exception(snapshot) if judged and judged[-1] < last_allocation else None
    told = None if message is None else failed_as_told(history, message)
    fatal = history.entries if told is None else told
    return tuple(
        _failed(snapshot, history, sites, entry, recovered=entry < min(last_allocation, fatal)) for entry in judged
    )


def _failed(
    snapshot: Snapshot, history: DeviceHistory, sites: SiteTable, entry: int, *, recovered: bool
) -> FailedRequest:
    trace, config = history.trace, history.config
    size, device_free = int(trace.size[entry]), int(trace.address[entry])
    alloc_size = allocation_size(size, config)
    limit = limit_at(snapshot, history, alloc_size, device_free, entry)
    totals = totals_at(history, entry)
    layout = history.layout_at(entry)
    stack = int(trace.stack[entry])
    row = trace.stack[entry : entry + 1]
    free = free_for_request(
        layout, config, size=size, stream=int(trace.stream[entry]), pool=pool_of(history, entry),
        room=max(limit.low - totals.reserved, 0),
    )  # fmt: skip
    return FailedRequest(
        entry=entry,
        time_us=int(trace.time_us[entry]) if trace.timed else None,
        size=size,
        alloc_size=alloc_size,
        device_free=device_free,
        stream=int(trace.stream[entry]),
        recovered=recovered,
        site=sites.location(int(sites.sites(row)[0])),
        caller=sites.location(int(sites.callers(row)[0])),
        stack=() if stack == NO_STACK else stack_text(snapshot.stacks, stack),
        limit=limit,
        totals=totals,
        free=free,
        layout=layout,
    )


def pool_of(history: DeviceHistory, entry: int) -> int:
    """The pool that the request at `entry` was routed to.

    Before torch 2.12 entries do not say. A stream on which nothing but private pools hold memory is one that graphs
    are captured on; the request then belongs to the pool that was last given memory there.
    """
    trace, spans = history.trace, history.spans
    if trace.pool[entry] >= 0:
        return int(trace.pool[entry])
    there = np.flatnonzero(spans.there_at(entry) & (spans.stream == trace.stream[entry]))
    if not len(there) or (spans.pool[there] == 0).any():
        return 0
    return int(spans.pool[there[spans.begin[there].argmax()]])


def the_one_that_matters(ooms: Sequence[Oom]) -> Oom | None:
    """The last that the program did not recover from, else the last."""
    fatal = [oom for oom in ooms if not oom.recovered]
    return fatal[-1] if fatal else ooms[-1] if ooms else None
