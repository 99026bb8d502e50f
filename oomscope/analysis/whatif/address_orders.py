"""The orders of addresses that are tried, to see whether the order matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from oomscope.allocator.addresses import Addresses, Ascending, Descending, Shuffled
from oomscope.allocator.block import ADDRESS_SPACE
from oomscope.analysis.whatif.preparation import MAX_ADDRESS

DEFAULT_ORDERS = 8


def other_orders(count: int) -> Sequence[Callable[[], Addresses]]:
    """Makers of `count` orders beside the trace's own: descending, ascending, then random ones.

    An order is used up by a replay, hence makers.
    """
    makers: list[Callable[[], Addresses]] = [
        partial(Descending, MAX_ADDRESS, ADDRESS_SPACE),
        partial(Ascending, MAX_ADDRESS, ADDRESS_SPACE),
    ]
    makers += [partial(Shuffled, seed, MAX_ADDRESS, ADDRESS_SPACE) for seed in range(1, count - 1)]
    return makers[: max(count, 0)]
