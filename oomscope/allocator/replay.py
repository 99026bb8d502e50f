"""Running a program through the allocator."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.block import ADDRESS_BITS, Block, StreamPool
from oomscope.allocator.compiled import CHOICE
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.device import UNBOUNDED, DeviceCachingAllocator
from oomscope.allocator.initial import restore
from oomscope.allocator.limits import NO_LIMIT, Limit
from oomscope.allocator.program import Op, Program
from oomscope.allocator.rounding import SMALL_SIZE, round_sizes
from oomscope.allocator.torch_releases import LATEST, Release
from oomscope.frozen import frozen
from oomscope.model import Action, IntArray
from oomscope.model.ordering import numbered


@frozen
class Failure:
    """A request that could not be served.

    Attributes:
        request: its number.
        entry: the trace entry it comes from.
        missing: bytes by which the limit was too small, as it was compared.
        recorded: whether the recorded run was refused the same request.
    """

    request: int
    entry: int
    missing: int
    recorded: bool


@frozen(eq=False)
class Replay:
    """What became of a program. Bytes.

    Attributes:
        config: the settings it ran under.
        limit: what it could reserve.
        peak_reserved, final_reserved: memory obtained from the device; final where the program ended or failed.
        peak_allocated: the most in use at once.
        segment_allocs: how often memory was obtained from the device.
        retries: how often all cached blocks were released to serve a request (num_alloc_retries).
        same_caps: (least, end): under any cap from `least` to below `end` the replay is the same; None where garbage
            collection makes every cap different. `end` is None where nothing was refused.
        refused: whether the limit ever refused memory, be it that the request was served after a release.
        failures: the requests that could not be served. The program ends at the first that the recorded one was
            served; it goes on after those that it was refused itself.
        addresses: for each request in the order of the program, where its block lay; -1 where it failed. Empty if they
            were not to be noted.
        segment_events: (action, address, size) of every change of the reserved memory.
        may_depend_on_addresses: whether another order of segment addresses could have given another result.
    """

    config: AllocatorConfig
    limit: Limit
    peak_reserved: int
    final_reserved: int
    peak_allocated: int
    segment_allocs: int
    retries: int
    same_caps: tuple[int, int | None] | None
    refused: bool
    failures: tuple[Failure, ...]
    addresses: list[int] = field(repr=False)
    segment_events: list[tuple[Action, int, int]] = field(repr=False)
    may_depend_on_addresses: bool = True

    @property
    def survived(self) -> bool:
        """Whether every request was served."""
        return not self.failures

    def serves(self, entry: int) -> bool:
        """Whether the request of trace entry `entry` is served; not where the replay ended before it."""
        return all(failed.entry != entry and (failed.recorded or failed.entry > entry) for failed in self.failures)


def replay(
    program: Program,
    config: AllocatorConfig,
    limit: Limit = NO_LIMIT,
    addresses: Addresses | None = None,
    release: Release = LATEST,
) -> Replay:
    """Run `program` once; see `Replayer.run`."""
    return Replayer(program, release).run(config, limit, addresses)


class Replayer:
    """Runs one program as often as wanted."""

    def __init__(self, program: Program, release: Release = LATEST) -> None:
        """Prepare a program.

        Args:
            program: what is asked for.
            release: whose rules hold.
        """
        self.program = program
        self._capturing = {number for number, pool in enumerate(program.pools) if release.captures(pool)}
        # By padding and divisions: the distinct (rounded size, pool, stream), and which of them each request is.
        self._kinds: dict[_Rounding, tuple[list[tuple[int, int, int]], list[int]]] = {}
        self._compiled_requests: dict[_Rounding, Any] = {}

    @cached_property
    def codes(self) -> list[int]:
        """Each step as one integer."""
        return _codes(self.program)

    def run(
        self,
        config: AllocatorConfig,
        limit: Limit = NO_LIMIT,
        addresses: Addresses | None = None,
        *,
        stop_at_failure: bool = False,
        note_addresses: bool = False,
        compiled: bool | None = None,
    ) -> Replay:
        """Run the program under `config` until it ends or a request fails that the recorded run was served.

        Args:
            config: the settings.
            limit: what may be reserved.
            addresses: where new segments lie; ascending if None.
            stop_at_failure: whether to end at any request that fails.
            note_addresses: whether to keep the address of every block.
            compiled: whether the compiled core does it, which answers the same; None: where it is worth it.
        """
        if compiled is None:
            compiled = CHOICE.of(len(self.program.op)) is not None
        way = self._compiled if compiled and not (config.base_alignment and config.expandable_segments) else self._plain
        allocator, failures, noted = way(config, limit, addresses, stop_at_failure, note_addresses)
        several = any(count > 1 for count in allocator.expandable_segments.values())
        return Replay(
            config=config,
            limit=limit,
            peak_reserved=allocator.peak_reserved,
            final_reserved=allocator.reserved,
            peak_allocated=allocator.peak_allocated,
            segment_allocs=allocator.num_device_alloc,
            retries=allocator.num_alloc_retries,
            same_caps=_same_caps(allocator),
            refused=allocator.missing > 0,
            failures=tuple(failures),
            addresses=noted,
            segment_events=allocator.segment_events,
            # One range of addresses a stream and pool leaves nothing to choose between.
            may_depend_on_addresses=several or not config.expandable_segments or self.program.initial is not None,
        )

    def _plain(
        self, config: AllocatorConfig, limit: Limit, addresses: Addresses | None, stop_at_failure: bool, note: bool
    ) -> _Outcome:
        allocator = DeviceCachingAllocator(config, limit, addresses, self._capturing)
        with _collector_paused():
            run = _Run(allocator, self.program, self._requests(allocator), [] if note else None)
            run.steps(self.codes, stop_at_failure)
        return allocator, run.failures, run.addresses or []

    def _compiled(
        self, config: AllocatorConfig, limit: Limit, addresses: Addresses | None, stop_at_failure: bool, note: bool
    ) -> _Outcome:
        core = CHOICE.load()
        if core is None:
            raise ModuleNotFoundError("The compiled core needs numba: pip install 'oomscope[fast]'.")
        rounding = _rounding(config)
        if rounding not in self._compiled_requests:
            self._compiled_requests[rounding] = core.requests_of(self.program, config)
        requests = self._compiled_requests[rounding]
        done = core.run(self.program, requests, self._capturing, config, limit, addresses, stop_at_failure, note)
        failures = [_failure(self.program, *refused) for refused in done.refused]
        noted = done.addresses()
        done.allocator.store.let_go()
        return done.allocator, failures, noted

    def _requests(self, allocator: DeviceCachingAllocator) -> list[_Request]:
        """What `allocator` is asked for, by number; equal requests are one object, for the sake of the cache."""
        rounding = _rounding(allocator.config)
        if rounding not in self._kinds:
            self._kinds[rounding] = self._distinct(round_sizes(self.program.size, allocator.config))
        kinds, kind_of = self._kinds[rounding]
        requests = [
            (size, allocator.get_pool(size <= SMALL_SIZE, stream, owner), size << ADDRESS_BITS)
            for size, owner, stream in kinds
        ]
        return list(map(requests.__getitem__, kind_of))

    def _distinct(self, rounded: IntArray) -> tuple[list[tuple[int, int, int]], list[int]]:
        streams, stream = numbered(self.program.stream)
        owners = int(self.program.owner.max(initial=0)) + 1
        kinds = (rounded * owners + self.program.owner) * max(len(streams), 1) + stream
        distinct, which = numbered(kinds)
        size_and_owner, stream_row = np.divmod(distinct, max(len(streams), 1))
        size, owner = np.divmod(size_and_owner, owners)
        return list(zip(size.tolist(), owner.tolist(), streams[stream_row].tolist(), strict=True)), which.tolist()


class _Run:
    """The state of one replay."""

    def __init__(
        self,
        allocator: DeviceCachingAllocator,
        program: Program,
        requests: list[_Request],
        addresses: list[int] | None,
    ) -> None:
        self.allocator = allocator
        self.program = program
        self.requests = requests
        self.blocks: list[Block | None] = [None] * program.requests
        self.failures: list[Failure] = []
        self.addresses = addresses
        if program.initial is not None:
            restore(allocator, program.initial, self.blocks)

    def steps(self, codes: list[int], stop_at_failure: bool) -> None:
        """Take every step. The two that make up nearly all of a program are told apart by their sign alone."""
        allocator, blocks, requests, addresses = self.allocator, self.blocks, self.requests, self.addresses
        malloc, free_block, rare = allocator.malloc, allocator.free_block, len(requests)
        for code in codes:
            if code < 0:
                block = blocks[~code]
                if block is not None:
                    blocks[~code] = None
                    allocator.allocated -= block.size
                    free_block(block)
            elif code < rare:
                size, home, least_key = requests[code]
                blocks[code] = block = malloc(size, home, least_key)
                if block is None:
                    self._fail(code, recorded=False)
                    return
                if addresses is not None:
                    addresses.append(block.address)
            else:
                self._rare_step(code - rare)
                if stop_at_failure and self.failures:
                    return

    def _rare_step(self, step: int) -> None:
        op, argument = int(self.program.op[step]), int(self.program.argument[step])
        allocator = self.allocator
        if op == Op.FREE_REQUESTED:
            block = self.blocks[argument]
            if block is not None:
                self.blocks[argument] = None
                allocator.free_requested(argument, block)
        elif op == Op.FREE_COMPLETED:
            allocator.free_completed(argument)
        elif op == Op.EMPTY_CACHE:
            allocator.empty_cache()
        elif op == Op.POOL_FREEABLE:
            allocator.freeable_pools.append(argument)
        else:
            self._try_malloc(argument)

    def _try_malloc(self, number: int) -> None:
        block = self.allocator.malloc(*self.requests[number])
        if block is None:
            self._fail(number, recorded=True)
            return
        if self.addresses is not None:
            self.addresses.append(block.address)
        self.allocator.allocated -= block.size
        self.allocator.free_block(block)

    def _fail(self, number: int, *, recorded: bool) -> None:
        if self.addresses is not None:
            self.addresses.append(-1)
        self.failures.append(_failure(self.program, number, recorded, self.allocator.missing))


_Outcome: TypeAlias = tuple[DeviceCachingAllocator, list[Failure], list[int]]
"""What is left at the end, what failed, and the addresses of blocks."""

_Rounding: TypeAlias = tuple[int, tuple[int, ...]]
"""What decides how sizes are rounded: padding and divisions."""

_Request: TypeAlias = tuple[int, StreamPool, int]
"""Rounded size, where to look, and the least key of a block that is large enough."""

_REQUESTS = (Op.MALLOC, Op.TRY_MALLOC)


def _rounding(config: AllocatorConfig) -> _Rounding:
    return config.padding, config.roundup_power2_divisions


def _failure(program: Program, request: int, recorded: bool, missing: int) -> Failure:
    steps = np.flatnonzero((program.argument == request) & np.isin(program.op, _REQUESTS))
    return Failure(request=request, entry=int(program.entry[steps[0]]), missing=missing, recorded=recorded)


def _codes(program: Program) -> list[int]:
    """Each step as one integer: a request's number, its complement for a free, and above them the rare steps."""
    codes = program.requests + np.arange(len(program.op))
    codes = np.where(program.op == Op.MALLOC, program.argument, codes)
    codes = np.where(program.op == Op.FREE, ~program.argument, codes)
    result: list[int] = codes.tolist()
    return result


def _same_caps(allocator: DeviceCachingAllocator) -> tuple[int, int | None] | None:
    if allocator.collects_garbage:
        return None
    refused = allocator.least_refused
    return allocator.most_allowed, None if refused == UNBOUNDED else refused


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic collection: a replay makes many linked objects and drops none before its end."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
