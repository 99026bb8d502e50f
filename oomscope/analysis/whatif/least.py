"""The least memory on which a program lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.device import UNBOUNDED
from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Op
from oomscope.allocator.replay import Replay, Replayer
from oomscope.allocator.rounding import round_sizes
from oomscope.frozen import frozen
from oomscope.units import MIB

STEP = 2 * MIB
"""How close the search comes where it has to try cap after cap."""

PROOFS = 32
"""How many replays above the least memory may be spent on showing that the program lives there as well."""
PROOF_STEPS = 4_000_000
"""How many steps these may have in all, for those of long programs take seconds each."""


@frozen
class Least:
    """The least cap from which on a program lives, in bytes.

    Attributes:
        cap: it lives here, and under every larger cap up to `proven_to`.
        retries: how often all cached blocks are released under `cap`.
        proven_to: None where every larger cap was shown to do; `cap` itself where no larger one was tried.
        lives_at: a smaller cap under which it lives as well, though it dies under one between; None: none is known.
        refused: the request that fails just below `cap`; None where that is not known.
    """

    cap: int
    retries: int
    proven_to: int | None = None
    lives_at: int | None = None
    refused: int | None = None


def least_memory(
    replayer: Replayer,
    config: AllocatorConfig,
    order: Callable[[], Addresses],
    device_total: int | None = None,
    may_go_on: Callable[[], bool] = lambda: True,
    known: Replay | None = None,
) -> Least:
    """The least cap from which on every request of the program is served.

    It is found by bisection. Each replay tells of more caps than its own: of all up to the first sum of reserved bytes
    and a request that it refused. A program can die under a larger cap than one it lives under, for what is released
    on the way makes another layout; so the larger caps are tried as well, as far as `PROOFS` and `PROOF_STEPS` go.
    Under garbage collection every cap is a case of its own: the search comes within `STEP`, and no larger cap is tried.
    More than the peak without a cap may be needed, because the cap is compared with the whole of a request even where
    expandable segments lack but a page of it.

    Args:
        replayer: the program.
        config: the settings.
        order: makes the addresses of new segments.
        device_total: the memory of the device, where known.
        may_go_on: whether there is time to try larger caps.
        known: a replay of the program under `config` in that order, on that device.
    """
    # Where nothing was refused, it went as it does without a bound; garbage is collected only under one.
    is_free = known is not None and not known.refused and not config.garbage_collection_threshold
    replays = [known] if known is not None and is_free else []

    def run(cap: int) -> Replay:
        for one in replays:
            if one.same_caps is not None and one.same_caps[0] <= cap < (one.same_caps[1] or UNBOUNDED + 1):
                return one
        limit = Limit(cap=cap, device_total=device_total)
        replays.append(replayer.run(config, limit, order(), stop_at_failure=True))
        return replays[-1]

    found = _bisected(run, replayer, config)
    if found.proven_to in (None, found.cap):
        return found
    proofs = max(1, min(PROOFS, PROOF_STEPS // max(len(replayer.program.op), 1)))
    return _proven(run, found, may_go_on, proofs)


def _bisected(run: Callable[[int], Replay], replayer: Replayer, config: AllocatorConfig) -> Least:
    """A cap under which the program lives, where it dies just below."""
    best, high = _some_that_lives(run)
    # An expandable segment maps a whole page where the cap still allows a part of it.
    low = max(-1, peak_live(replayer, config) - 1 - (config.large_segment_size if config.expandable_segments else 0))
    precision = STEP if best.same_caps is None else 1
    refused = None
    while high - low > precision:
        middle = (low + high) // 2
        tried = run(middle)
        least, end = tried.same_caps or (middle, middle + 1)
        if tried.survived:
            best, high = tried, least
        else:
            refused = tried.failures[0].request
            low = middle if end is None else end - 1
    return Least(high, best.retries, high if best.same_caps is None else best.same_caps[1], refused=refused)


def _proven(run: Callable[[int], Replay], found: Least, may_go_on: Callable[[], bool], proofs: int = PROOFS) -> Least:
    """The least cap above which no cap was found under which the program dies."""
    alive = True
    for number in count():
        bound = found.proven_to
        if bound is None or (alive and (number >= proofs or not may_go_on())):
            break
        tried = run(bound)
        assert tried.same_caps is not None
        if not tried.survived:
            found = replace(found, lives_at=found.lives_at or found.cap, refused=tried.failures[0].request)
        elif not alive:
            found = replace(found, cap=bound, retries=tried.retries)
        alive = tried.survived
        found = replace(found, proven_to=tried.same_caps[1])
    return found


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
