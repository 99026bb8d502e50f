"""Which causes qualify: the one thing without which the failed request would have succeeded.

Each is tested alone by arithmetic: the bytes that it alone would have given, with what the limit still left, against
the bytes that were asked for. With *margin* — 3 % of the limit — it qualifies. A request that only just fits would
not have lived long, and a few percent of holes are what any allocator leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

from oomscope.analysis.records import CAUSES, FreeForRequest, Growth, Limit, Qualifying

MARGIN = 0.03
NORMAL_OUTSIDE = 1 << 30
"""What a CUDA context, its libraries and NCCL normally take of a card; more than that is somebody else's."""


@dataclass(frozen=True, slots=True)
class Case:
    """A failed request and what stood around it. Bytes.

    Attributes:
        size: the rounded request.
        reserved: reserved when it failed.
        limit: what could be reserved.
        free: the free bytes by what they were worth to it.
        growth: what grew, at its entry.
        outside: bytes of the card outside this allocator, None where unknown.
        total: bytes of the card, None where unknown.
        cap: this process's share of the card, None where unknown or unlimited.
    """

    size: int
    reserved: int
    limit: Limit
    free: FreeForRequest
    growth: tuple[Growth, ...] = ()
    outside: int | None = None
    total: int | None = None
    cap: int | None = None

    @property
    def device(self) -> int | None:
        """The most that this process could ever hold: its cap, or the card but for a normal context; None unknown."""
        card = None if self.total is None else self.total - min(self.outside or 0, NORMAL_OUTSIDE)
        return min((bound for bound in (self.cap, card) if bound is not None), default=None)


@dataclass(frozen=True, slots=True)
class Tested:
    """What the tests gave.

    Attributes:
        cause: the first cause that qualifies, else ``capacity``.
        certain: whether no other limit within the bracket would give another cause.
        qualifying: all that qualify, in the order of `CAUSES`.
        only_higher: those that qualify only at a higher limit within the bracket.
        together: whether holes, walls and streams together would have given room, though none alone does.
    """

    cause: str
    certain: bool
    qualifying: tuple[Qualifying, ...]
    only_higher: tuple[Qualifying, ...]
    together: bool


def decide(case: Case) -> Tested:
    """Decide the cause at the low end of the limit, and whether the high end agrees."""
    low, high = case.limit.low, case.limit.high if case.limit.high is not None else case.limit.low
    at_low, at_high = _qualifying(case, low, case.limit.source != "bracket"), _qualifying(case, high, True)
    known = {found.cause for found in at_low}
    only_higher = tuple(found for found in at_high if found.cause not in known)
    if at_low:
        cause = at_low[0].cause
        certain = all(CAUSES.index(found.cause) > CAUSES.index(cause) for found in only_higher)
    else:
        wall = _wall_that_just_fits(case, low, only_higher)
        cause, certain = wall.cause if wall else "capacity", not only_higher
        at_low = (wall,) if wall else ()
    if case.device is None and (cause == "oversized_request" or (case.limit.source == "bracket" and case.size > low)):
        # What an empty device would have served is not known: less than this in one part of the bracket, or on a
        # card that is filled by others.
        certain = False
    free = case.free
    together = free.usable + free.walled + free.other_streams + free.other_class + free.pending + low - case.reserved
    return Tested(cause, certain, at_low, only_higher, together - case.size >= MARGIN * low)


def _qualifying(case: Case, limit: int, oversized_is_known: bool) -> tuple[Qualifying, ...]:
    margin = int(MARGIN * limit)
    found = []
    if _is_oversized(case, limit, oversized_is_known):
        found.append(Qualifying("oversized_request", case.size, 0))
    for cause, given in _given(case).items():
        spare = given + limit - case.reserved - case.size
        if given > 0 and spare >= margin:
            found.append(Qualifying(cause, given, spare))
    return tuple(sorted(found, key=lambda one: CAUSES.index(one.cause)))


def _is_oversized(case: Case, limit: int, limit_is_known: bool) -> bool:
    """Whether an empty device would not have served the request either."""
    if case.device is not None:
        return case.size > case.device
    return case.size > limit and (limit_is_known or case.reserved < MARGIN * case.size)


def _given(case: Case) -> dict[str, int]:
    """The bytes that each cause alone withheld from the request."""
    free = case.free
    return {
        "growth": sum(growth.spared_bytes for growth in case.growth),
        "private_pools": free.walled,
        "other_stream": free.other_streams + free.pending,
        "outside_allocator": max((case.outside or 0) - NORMAL_OUTSIDE, 0),
        "fragmentation": free.usable,
    }


def _wall_that_just_fits(case: Case, limit: int, only_higher: tuple[Qualifying, ...]) -> Qualifying | None:
    """A wall between pools or streams with which the request fits, without margin at this limit but at a higher one.

    The margin is there for holes, of which every allocator leaves some. A wall is made by the program.
    """
    for found in only_higher:
        spare = found.bytes + limit - case.reserved - case.size
        if found.cause in ("private_pools", "other_stream") and spare >= 0:
            return Qualifying(found.cause, found.bytes, spare)
    return None
