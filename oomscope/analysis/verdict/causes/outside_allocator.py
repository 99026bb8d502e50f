"""Outside: the device is filled by what this allocator does not own, and that is what bound the request."""

from __future__ import annotations

from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.shortage import NORMAL_OUTSIDE, Shortage, Tested
from oomscope.model import Note, note

SLUG = "outside_allocator"
DECIDING = ("request", "outside", "total")
REMEDIES = ("free_the_card",)
LOOKS_LIKE = ("neighbour_on_a_card_with_room", "cap", "own_process_in_a_container")


def withheld(case: Shortage) -> int:
    """What others hold beyond a normal context, where the card and not a cap was the limit."""
    if case.outside is None or case.cap_binds:
        return 0
    return max(case.outside - NORMAL_OUTSIDE, 0)


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where the card's size is recorded and the request fits with margin without the others."""
    return clauses.doubt_of_wall(circumstances, tested, circumstances.request.size)


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """How the card is divided, and who has the rest."""
    del tested
    return (
        note(
            "causes.outside_allocator",
            reserved=circumstances.request.totals.reserved,
            total=circumstances.total or 0,
            outside=circumstances.outside or 0,
            others=circumstances.others[:3],
        ),
    )


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """The parts add up to no more than the card, and it was the card that bound."""
    del tested
    case = circumstances.shortage
    return case.total is not None and (case.outside or 0) + case.reserved <= case.total and not case.cap_binds
