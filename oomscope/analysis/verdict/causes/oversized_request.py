"""One request that is larger by itself than the card, the cap or all that this process may hold."""

from __future__ import annotations

from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.shortage import Shortage, Tested
from oomscope.model import Note, note
from oomscope.units import GIB

SLUG = "oversized_request"
DECIDING = ("request", "limit", "reserved")
REMEDIES = ("split_request", "raise_cap")
LOOKS_LIKE = ("large_request_on_a_full_card",)

LARGEST_CARD = 288 * GIB
"""No single device of today holds more, whatever else may fill this one."""


def withheld(case: Shortage) -> int:
    """Nothing was kept from it: `decide` compares the request itself with the limit."""
    del case
    return 0


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where the limit is known, or where no card would do."""
    known = tested.certain or circumstances.request.size > LARGEST_CARD
    return None if known else note("doubts.limit")


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """How large it is, and what bounds it."""
    del tested
    request, case = circumstances.request, circumstances.shortage
    capped = case.cap is not None and case.device == case.cap
    bound = "causes.oversized_request.cap" if capped else "causes.oversized_request.card"
    if case.device is None:
        # Of a cap that is not recorded it is known what was held below it, and no more.
        known = request.limit.source != "bracket"
        bound = "causes.oversized_request.limit" if known else "causes.oversized_request.refused"
    return (
        note(
            bound,
            size=request.size,
            site=request.caller or request.site,
            limit=case.device or request.limit.low,
        ),
    )


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """It is larger than the bound that is named."""
    del tested
    case = circumstances.shortage
    return circumstances.request.size > (case.device or circumstances.request.limit.low)
