"""Memory that waited for a stream and came free within the failing call.

When nothing else is left, a request waits for the events of blocks that other streams used, and releases what is then
wholly free. What becomes free inside a segment that is still in use is not looked at again in the releases we know
(pytorch#189504): the request fails beside a hole that would have served it.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.history import DeviceHistory
from oomscope.model import Action


def opened_within_the_call(history: DeviceHistory, request: FailedRequest) -> int:
    """Bytes of the largest hole for `request`, if blocks that came free within the failing call made it; else 0."""
    if request.free.largest < request.size:
        return 0
    begin = call_begins(history, request.entry)
    lifetimes = history.lifetimes
    came_free = (lifetimes.gone > begin) & (lifetimes.gone < request.entry) & (lifetimes.freed <= begin)
    return request.free.largest if bool(came_free.any()) else 0


def call_begins(history: DeviceHistory, entry: int) -> int:
    """The last entry before the failing call at `entry`: all that it did itself is completed frees and releases."""
    own = (Action.FREE_COMPLETED, Action.SEGMENT_FREE, Action.SEGMENT_UNMAP, Action.SEGMENT_MAP)
    others = np.flatnonzero(~np.isin(history.trace.action[:entry], own))
    return int(others[-1]) if len(others) else -1
