"""A failed request in numbers: all that the counterfactuals need, and what they gave."""

from __future__ import annotations

from oomscope.analysis.memory.records import FreeForRequest
from oomscope.analysis.verdict.records import ProcessLimit, Qualifying
from oomscope.frozen import frozen

MARGIN = 0.03
"""Of the limit. An allocator leaves about so much in holes even when nothing is wrong."""

NORMAL_OUTSIDE = 1 << 30
"""What a CUDA context, its libraries and NCCL normally take of a card; more than that is somebody else's."""


@frozen
class Shortage:
    """A failed request and what stood around it. Bytes.

    Attributes:
        size: the rounded request.
        reserved: reserved when it failed.
        limit: what could be reserved.
        free: the free bytes by what they were worth to it.
        grown: live bytes that finished passes of a loop left behind.
        filling: whether those may be a result that is gathered, and is done some day: a plain list of a call underway.
        garbage: those of `retained` that no code can read, where what has grown may be read some day.
        retained: live bytes that nothing uses any more: kept exceptions, unreachable cycles, calls that have ended.
        opened: the largest hole that opened within the failing call, when a stream was waited for.
        outside: bytes of the card outside this allocator, None where unknown.
        total: bytes of the card, None where unknown.
        cap: this process's share of the card, None where unknown or unlimited.
    """

    size: int
    reserved: int
    limit: ProcessLimit
    free: FreeForRequest
    grown: int = 0
    filling: bool = False
    garbage: int = 0
    retained: int = 0
    opened: int = 0
    outside: int | None = None
    total: int | None = None
    cap: int | None = None

    @property
    def device(self) -> int | None:
        """The most that this process could ever hold: its cap, or the card but for a normal context; None unknown."""
        card = None if self.total is None else self.total - min(self.outside or 0, NORMAL_OUTSIDE)
        return min((bound for bound in (self.cap, card) if bound is not None), default=None)

    @property
    def cap_binds(self) -> bool:
        """Whether the cap of the process refused the request, and not a card that was full."""
        if self.limit.source == "bracket":
            return True
        if self.cap is None:
            return False
        return self.total is None or self.outside is None or self.total - self.outside > self.cap

    def spare(self, withheld: int, limit: int) -> int:
        """What would have been left had `withheld` bytes been there for the request; negative: what it lacks."""
        return withheld + limit - self.reserved - self.size


@frozen
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
    qualifying: tuple[Qualifying, ...] = ()
    only_higher: tuple[Qualifying, ...] = ()
    together: bool = False
