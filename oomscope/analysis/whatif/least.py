"""The least memory on which a program lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.device import UNBOUNDED
from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Op
from oomscope.allocator.replay import Replay, Replayer
from oomscope.allocator.rounding import round_sizes
from oomscope.units import MIB

STEP = 2 * MIB
"""How close the search comes where it has to try cap after cap."""


@dataclass(frozen=True, slots=True)
class Least:
    """The least cap under which a program lives, in bytes, and the retries that it takes there."""

    cap: int
    retries: int


def least_memory(
    replayer: Replayer, config: AllocatorConfig, order: Callable[[], Addresses], device_total: int | None = None
) -> Least:
    """The least cap under which every request of the program is served.

    It is found by bisection, for a program that lives under some cap was never seen to die under a larger one. Each
    replay tells of more caps than its own: of all up to the first sum of reserved bytes and a request that it refused.
    More than the peak without a cap may be needed, because the cap is compared with the whole of a request even where
    expandable segments lack but a page of it.

    Args:
        replayer: the program.
        config: the settings.
        order: makes the addresses of new segments.
        device_total: the memory of the device, where known.
    """

    def run(cap: int) -> Replay:
        limit = Limit(cap=cap, device_total=device_total)
        return replayer.run(config, limit, order(), stop_at_failure=True)

    best, high = _some_that_lives(run)
    # An expandable segment maps a whole page where the cap still allows a part of it.
    low = peak_live(replayer, config) - 1 - (config.large_segment_size if config.expandable_segments else 0)
    # Under garbage collection every cap is a case of its own.
    precision = STEP if best.same_caps is None else 1
    while high - low > precision:
        middle = (low + high) // 2
        tried = run(middle)
        least, refused = tried.same_caps or (middle, middle + 1)
        if tried.survived:
            best, high = tried, least
        else:
            low = middle if refused is None else refused - 1
    return Least(high, best.retries)


def _some_that_lives(run: Callable[[int], Replay]) -> tuple[Replay, int]:
    """A replay that serves every request, and the least cap known to give it."""
    free = run(UNBOUNDED)
    if free.same_caps is not None:
        return free, free.same_caps[0]
    cap = free.peak_reserved
    while not (tried := run(cap)).survived:
        cap += max(cap // 8, STEP)
    return tried, cap


def peak_live(replayer: Replayer, config: AllocatorConfig) -> int:
    """The most bytes in use at once, by rounded requests alone: no layout needs less."""
    program = replayer.program
    sizes = round_sizes(program.size, config)
    held = 0
    if program.initial is not None:
        numbers = program.initial.number
        held = int(sizes[numbers[numbers >= 0]].sum())
    change = np.zeros(len(program.op), np.int64)
    for ops, sign in (((Op.MALLOC,), 1), ((Op.FREE, Op.FREE_REQUESTED), -1)):
        steps = np.isin(program.op, ops)
        change[steps] = sign * sizes[program.argument[steps]]
    live = held + np.cumsum(change)
    # A request that the recorded run was refused holds its bytes for one step only.
    tried = np.flatnonzero(program.op == Op.TRY_MALLOC)
    served = live[tried] + sizes[program.argument[tried]]
    return int(max(live.max(initial=held), served.max(initial=0)))
