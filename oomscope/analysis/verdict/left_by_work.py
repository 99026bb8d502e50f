"""How much of the memory earlier work has left while a forward runs, where that alone tells why the request failed."""

from __future__ import annotations

from oomscope.analysis.passes.left_by_calls import (
    LeftByCalls,
    find_left_by_calls,
    find_left_by_last_pass,
    find_left_by_statements,
)
from oomscope.analysis.passes.records import FailingPass, Growth
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.failed_requests import FailedRequest

MUCH_OLDER = 0.4
"""Of the limit: what is older than a forward, and would leave so much beyond the request, is no mere data as a rule."""


def left_by_earlier_work(
    study: DeviceStudy, request: FailedRequest, growth: tuple[Growth, ...], passes: FailingPass | None
) -> LeftByCalls | None:
    """What calls, statements or the last pass have left; without the latter two the request would have had ample room.

    Args:
        study: of the device.
        request: that failed, in a forward.
        growth: what grew until then; where something did, only calls that have returned are asked.
        passes: how the loop's last pass compares with this one; None leaves the last pass out.
    """
    if (found := find_left_by_calls(study, request.entry)) is not None or growth:
        return found
    low = request.limit.low
    least = max(request.totals.reserved + request.size - low + int(MUCH_OLDER * low), 1)
    if (found := find_left_by_statements(study, request.entry, least)) is not None:
        return found
    if passes is None or passes.gathers:
        return None
    return find_left_by_last_pass(study, request.entry, least)
