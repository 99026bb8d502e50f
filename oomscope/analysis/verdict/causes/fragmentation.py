"""Fragmentation: the bytes are there, in holes none of which fits, and would fit with margin if they were one."""

from __future__ import annotations

from oomscope.analysis.memory.records import Pin
from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.shortage import Shortage, Tested
from oomscope.model import Note, note

SLUG = "fragmentation"
DECIDING = ("request", "usable", "largest")
REMEDIES = ("allocator_setting", "move_pins", "bucket_lengths", "limit_calls_in_progress", "raise_cap")
LOOKS_LIKE = ("full_memory_with_a_few_holes", "hole_that_opened_too_late", "list_that_fills_the_memory")

SURE_OF_HOLES = 0.10
"""The share of the limit that must be left over to be sure of fragmentation. A program that fills its memory fails at
some request; one that fits into the holes with little to spare was followed by others that would not have."""

CERTAIN_OF_HOLES = 0.15
"""The same, where no pass like this one has fitted: the rest of a first pass may need more than a few requests."""

LASTING_PASSES = 10
"""Relief that lasts for fewer passes of what is being filled is none: the run would have failed a little later."""

AS_MUCH_AGAIN = 0.9
"""Of what the forward or backward underway holds: what must be left for the rest of it, which nobody has seen."""

WORTH_TELLING = 0.1
"""Of the free bytes; a line whose blocks keep less than that open is not why they are in pieces."""


def withheld(case: Shortage) -> int:
    """Free bytes where the request may look, if no single hole would have served it."""
    return 0 if case.free.largest >= case.size else case.free.usable


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where much would have been left over, and nothing unknown may have filled the card."""
    spare, low = tested.qualifying[0].spare, circumstances.request.limit.low
    if circumstances.card_unknown:
        return note("doubts.card")
    if spare < SURE_OF_HOLES * low:
        return note("doubts.little_to_spare", bytes=spare)
    if spare < CERTAIN_OF_HOLES * low and not _has_fitted(circumstances):
        return note("doubts.not_fitted_before")
    if circumstances.shortage.filling and circumstances.shortage.grown and circumstances.loop.goes_on:
        return note("doubts.no_end")
    if circumstances.in_progress:
        return note("doubts.calls_at_once")
    return clauses.doubt_of_wall(circumstances, tested, circumstances.request.size)


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """How much is free, in what pieces, and what keeps them apart."""
    free, request = circumstances.request.free, circumstances.request
    first = note(
        "causes.fragmentation",
        usable=free.usable,
        largest=free.largest,
        size=request.size,
        room=max(request.limit.low - request.totals.reserved, 0),
        spare=tested.qualifying[0].spare,
    )
    pins = [pin for pin in circumstances.pins[:1] if pin.stranded_bytes >= WORTH_TELLING * free.usable]
    pinned = (found for pin in pins for found in (_kept_by(pin, free.usable), *clauses.holder_of(circumstances, pin)))
    return (first, *pinned, *clauses.calls_in_progress(circumstances))


def _kept_by(pin: Pin, usable: int) -> Note:
    whole = pin.stranded_bytes >= usable
    code = "causes.fragmentation.pinned_all" if whole else "causes.fragmentation.pinned"
    return note(code, blocks=pin.blocks, place=pin.site or pin.caller, bytes=pin.stranded_bytes)


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """No hole was large enough, all together were, and it would have lasted.

    A forward or backward the like of which has not fitted before may be anywhere in its middle: what it has made so far
    tells how much it may still ask for.
    """
    case, piled = circumstances.shortage, circumstances.piled
    spare = tested.qualifying[0].spare
    pace = (piled.per_pass or 0) if circumstances.loop.goes_on else 0  # what a loop that ended has filled is done
    lasts = spare >= LASTING_PASSES * max(pace, circumstances.needs.rise)
    fits = case.free.largest < case.size <= case.free.usable + max(case.limit.low - case.reserved, 0)
    ample = spare >= SURE_OF_HOLES * case.limit.low
    if not (fits and lasts):
        return False
    if _has_fitted(circumstances):
        return _has_room_for_the_pass(circumstances)
    return ample and spare >= AS_MUCH_AGAIN * circumstances.needs.at_work and _has_room_for_the_pass(circumstances)


def _has_room_for_the_pass(circumstances: Circumstances) -> bool:
    """Whether this pass could go on, with all that is free in one piece.

    It needs what the last one needed, and what an optimizer that is in its first step has yet to make of its state.
    """
    request, (made, state) = circumstances.request, circumstances.needs.state_to_come
    still = circumstances.needs.still_to_come
    if still is None and state <= made:
        return True
    return max(still or 0, state - made, request.size) <= request.limit.high - request.totals.active


def _has_fitted(circumstances: Circumstances) -> bool:
    """Whether passes like this one have fitted before, so that it is not known to need more than there is.

    With little to spare, a first pass, or one with a longer batch, would have failed at one of its next requests.
    """
    found = circumstances.failing_pass
    return found is not None and found.has_fitted
