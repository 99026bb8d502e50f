"""How much of the memory earlier work has left while a forward runs, where that alone tells why the request failed."""

from __future__ import annotations

from oomscope.analysis.passes.ended_training import find_ended_training
from oomscope.analysis.passes.former_model import find_former_model
from oomscope.analysis.passes.left_by_calls import (
    LeftByCalls,
    find_left_by_calls,
    find_left_by_last_pass,
    find_left_by_statements,
)
from oomscope.analysis.passes.loaded_copies import find_loaded_copies
from oomscope.analysis.passes.records import FailingPass, Growth
from oomscope.analysis.passes.replaced_optimizer import find_replaced_optimizer
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.verdict.records import Suspect

MUCH_OLDER = 0.4
"""Of the limit: what is older than a forward, and would leave so much beyond the request, is no mere data as a rule."""


LEAST_PASSES = 3
"""Passes that have filled a collection, for it to be what a loop has gathered."""
MOSTLY = 0.5
"""Of the allocated bytes: so much no loop gathers for the next one as a rule."""
_COLLECTIONS = ("list", "dict", "deque", "set", "collection")


def left_by_trace(study: DeviceStudy, entry: int) -> int:
    """Bytes that the trace shows to be left over by an earlier training, whatever the recording knows of names."""
    finders = (find_ended_training, find_replaced_optimizer, find_loaded_copies, find_former_model)
    found = [find(study, entry) for find in finders]
    return max((one.bytes for one in found if one is not None), default=0)


def left_in_a_collection(
    study: DeviceStudy, request: FailedRequest, suspects: tuple[Suspect, ...]
) -> LeftByCalls | None:
    """What calls that have returned have left in an attribute's collection, pass after pass of a loop that has ended.

    Who reads a variable of a running call is known. Who reads an attribute, methods of its object know that do not run.
    """
    found = find_left_by_calls(study, request.entry)
    keeper = next((one for one in suspects if _is_filled_by_passes(one)), None)
    if found is None or keeper is None or 2 * keeper.retained < found.bytes:
        return None
    return found._replace(bytes=min(found.bytes, keeper.retained), holder=keeper.holder)


def _is_filled_by_passes(suspect: Suspect) -> bool:
    is_attribute = "." in suspect.holder.rpartition(": ")[2]
    is_result = suspect.share >= MOSTLY and suspect.passes >= LEAST_PASSES and suspect.unread is None
    return is_attribute and is_result and suspect.kind in _COLLECTIONS and not suspect.is_full


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
