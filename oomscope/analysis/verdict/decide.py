"""Which causes qualify: the one thing without which the failed request would have succeeded.

Each is tested alone by arithmetic: the bytes that it alone withheld, with what the limit still left, against the bytes
that were asked for. With *margin* — 3 % of the limit — it qualifies. A request that only just fits would not have lived
long, and a few percent of holes are what any allocator leaves.
"""

from __future__ import annotations

from oomscope.analysis.records import CAUSES
from oomscope.analysis.verdict.causes import CAUSE_MODULES, WALLS
from oomscope.analysis.verdict.records import Qualifying
from oomscope.analysis.verdict.shortage import MARGIN, Shortage, Tested

PILES = ("growth", "retained")
FAR_MORE = 2
"""Times. A short list beside gigabytes that are free and cannot be used is not what went wrong."""
FULL_OF_HOLES = 0.25
"""Of the limit; beside a result that is being gathered, so much in holes is what went wrong, where it is enough for
half as much of the result again."""


def decide(case: Shortage) -> Tested:
    """Decide the cause at the low end of the limit, and whether the high end agrees.

    Args:
        case: the request in numbers.
    """
    low, high = case.limit.low, case.limit.high
    at_low, at_high = _qualifying(case, low, case.limit.source != "bracket"), _qualifying(case, high, True)
    at_low = _by_weight(at_low, case)
    known = {found.cause for found in at_low}
    only_higher = tuple(found for found in at_high if found.cause not in known)
    if at_low:
        cause = at_low[0].cause
        certain = all(CAUSES.index(found.cause) > CAUSES.index(cause) for found in only_higher)
    else:
        wall = _wall_that_just_fits(case, low, only_higher)
        found = wall or _retained_beside_holes(case, low)
        cause, certain = found.cause if found else "capacity", not only_higher and found is wall
        at_low = (found,) if found else ()
    if case.device is None and (cause == "oversized_request" or (case.limit.source == "bracket" and case.size > low)):
        # What an empty device would have served is not known: less than this in one part of the bracket, or on a
        # card that is filled by others.
        certain = False
    free = case.free
    together = free.usable + free.walled + free.other_streams + free.other_class + free.pending + low - case.reserved
    return Tested(cause, certain, at_low, only_higher, together - case.size >= MARGIN * low)


def _qualifying(case: Shortage, limit: int, oversized_is_known: bool) -> tuple[Qualifying, ...]:
    margin = int(MARGIN * limit)
    found: list[Qualifying] = []
    if _is_oversized(case, limit, oversized_is_known):
        found.append(Qualifying("oversized_request", case.size, 0))
    for cause, module in CAUSE_MODULES.items():
        withheld = module.withheld(case)
        spare = case.spare(withheld, limit)
        if withheld > 0 and spare >= margin:
            found.append(Qualifying(cause, withheld, spare))
    return tuple(sorted(found, key=lambda one: CAUSES.index(one.cause)))


def _by_weight(found: tuple[Qualifying, ...], case: Shortage) -> tuple[Qualifying, ...]:
    """The causes in order, but what has piled up behind what withheld far more than that, or a result behind holes.

    What may be a result stands behind garbage, too, if that is half as much or more: nothing will ever read it.
    """
    if found and found[0].cause in PILES:
        piled, filling = found[0].bytes, case.filling and found[0].cause == "growth"
        least = max(FULL_OF_HOLES * case.limit.low, piled / 2) if filling else FAR_MORE * piled + 1
        heavier = [one for one in found[1:] if one.bytes >= least and one.cause not in PILES]
        if found[0].cause == "growth" and 2 * case.garbage >= piled:
            heavier += [one for one in found[1:] if one.cause == "retained"]
        return (*heavier, *(one for one in found if one not in heavier))
    return found


def _is_oversized(case: Shortage, limit: int, limit_is_known: bool) -> bool:
    """Whether an empty device would not have served the request either.

    Where only a bracket of the limit is known, that is likely once the request is far more than was ever reserved.
    """
    if case.device is not None:
        return case.size > case.device
    return case.size > limit and (limit_is_known or case.size >= FAR_MORE * max(limit, case.reserved))


def _wall_that_just_fits(case: Shortage, limit: int, only_higher: tuple[Qualifying, ...]) -> Qualifying | None:
    """A wall between pools or streams with which the request fits, without margin at this limit but at a higher one.

    The margin is there for holes, of which every allocator leaves some. A wall is made by the program.
    """
    for found in only_higher:
        spare = case.spare(found.bytes, limit)
        if found.cause in WALLS and spare >= 0:
            return Qualifying(found.cause, found.bytes, spare)
    return None


def _retained_beside_holes(case: Shortage, low: int) -> Qualifying | None:
    """What nothing uses any more, without which all the rest would fit, were the holes between it one piece.

    That refutes that the program needs too much, though neither would have been enough alone.
    """
    withheld = CAUSE_MODULES["retained"].withheld(case)
    spare = case.spare(withheld + case.free.usable, low)
    return Qualifying("retained", withheld, spare) if min(withheld, spare) >= MARGIN * low else None
