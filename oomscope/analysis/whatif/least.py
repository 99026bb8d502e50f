"""The least memory on which a program lives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Op
from oomscope.allocator.replay import Replay, Replayer
from oomscope.allocator.rounding import round_sizes
from oomscope.units import MIB

STEP = 2 * MIB
"""Segments and pages are multiples of it."""


def least_memory(
    replayer: Replayer, config: AllocatorConfig, order: Callable[[], Addresses], device_total: int | None = None
) -> Replay:
    """The replay under the least cap, in steps of 2 MiB, under which every request of the program is served.

    It is found by bisection, for a program that lives under some cap was never seen to die under a larger one. More
    than the peak without a cap may be needed, because the cap is compared with the whole of a request even where
    expandable segments lack but a page of it.

    Args:
        replayer: the program.
        config: the settings.
        order: makes the addresses of new segments.
        device_total: the memory of the device, where known.
    """

    def run(steps: int) -> Replay:
        limit = Limit(cap=steps * STEP, device_total=device_total)
        return replayer.run(config, limit, order(), stop_at_failure=True)

    low = peak_live(replayer, config) // STEP - 1
    high = -(-replayer.run(config, Limit(device_total=device_total), order()).peak_reserved // STEP)
    margin = 16
    while not (best := run(high)).survived:
        low, high, margin = high, high + margin, 2 * margin
    while high - low > 1:
        middle = (low + high) // 2
        tried = run(middle)
        if tried.survived:
            best, high = tried, middle
        else:
            low = middle
    return best


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
