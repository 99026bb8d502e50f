"""Running a program through the allocator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.block import Block, StreamPool
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.device import DeviceCachingAllocator
from oomscope.allocator.initial import restore
from oomscope.allocator.limits import NO_LIMIT, Limit
from oomscope.allocator.program import Op, Program
from oomscope.allocator.rounding import SMALL_SIZE, allocation_size, round_sizes
from oomscope.allocator.torch_releases import LATEST, Release
from oomscope.model import Action


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that could not be served.

    Attributes:
        request: its number.
        entry: the trace entry it comes from.
        requested: bytes asked for.
        reserved: bytes that were reserved after everything that could be released was.
        alloc_size: bytes that were asked of the device.
        recorded: whether the recorded run was refused the same request.
    """

    request: int
    entry: int
    requested: int
    reserved: int
    alloc_size: int
    recorded: bool


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What became of a program. Bytes.

    Attributes:
        config: the settings it ran under.
        limit: what it could reserve.
        peak_reserved, final_reserved: memory obtained from the device; final where the program ended or failed.
        peak_allocated: the most in use at once.
        segment_allocs: how often memory was obtained from the device.
        retries: how often all cached blocks were released to serve a request (num_alloc_retries).
        failures: the requests that could not be served. The program ends at the first that the recorded one was
            served; it goes on after those that it was refused itself.
        addresses: for each request in the order of the program, where its block lay; -1 where it failed.
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
    failures: tuple[Failure, ...]
    addresses: list[int] = field(repr=False)
    segment_events: list[tuple[Action, int, int]] = field(repr=False)
    may_depend_on_addresses: bool = True

    @property
    def survived(self) -> bool:
        """Whether every request was served."""
        return not self.failures


def replay(
    program: Program,
    config: AllocatorConfig,
    limit: Limit = NO_LIMIT,
    addresses: Addresses | None = None,
    release: Release = LATEST,
) -> Replay:
    """Run `program` under `config` until it ends or a request fails that the recorded run was served.

    Args:
        program: what is asked for.
        config: the settings.
        limit: what may be reserved.
        addresses: where new segments lie; ascending if None.
        release: whose rules hold.
    """
    capturing = {number for number, pool in enumerate(program.pools) if release.captures(pool)}
    allocator = DeviceCachingAllocator(config, limit, addresses, capturing)
    blocks: list[Block | None] = [None] * program.requests
    if program.initial is not None:
        restore(allocator, program.initial, blocks)
    run = _Run(allocator, program, blocks)
    run.steps()
    segments = allocator.expandable_segments.values()
    return Replay(
        config=config,
        limit=limit,
        peak_reserved=allocator.peak_reserved,
        final_reserved=allocator.reserved,
        peak_allocated=allocator.peak_allocated,
        segment_allocs=allocator.num_device_alloc,
        retries=allocator.num_alloc_retries,
        failures=tuple(run.failures),
        addresses=run.addresses,
        segment_events=allocator.segment_events,
        # One range of addresses a stream and pool leaves nothing to choose between.
        may_depend_on_addresses=not config.expandable_segments
        or program.initial is not None
        or any(count > 1 for count in segments),
    )


class _Run:
    """The state of one replay."""

    def __init__(self, allocator: DeviceCachingAllocator, program: Program, blocks: list[Block | None]) -> None:
        self.allocator = allocator
        self.program = program
        self.blocks = blocks
        self.failures: list[Failure] = []
        self.addresses: list[int] = []
        rounded = round_sizes(program.size, allocator.config)
        self.sizes: list[int] = rounded.tolist()
        self.homes = _homes(allocator, program, rounded)

    def steps(self) -> None:
        """Take every step. The two that make up nearly all of a program are told apart by their sign alone."""
        allocator, blocks, sizes, homes = self.allocator, self.blocks, self.sizes, self.homes
        malloc, free_block, note = allocator.malloc, allocator.free_block, self.addresses.append
        requests = len(sizes)
        for code in _codes(self.program):
            if code < 0:
                block = blocks[~code]
                if block is not None:
                    blocks[~code] = None
                    allocator.allocated -= block.size
                    free_block(block)
            elif code < requests:
                blocks[code] = block = malloc(sizes[code], homes[code])
                if block is None:
                    self._fail(code, recorded=False)
                    return
                note(block.address)
            else:
                self._rare_step(code - requests)

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
        block = self.allocator.malloc(self.sizes[number], self.homes[number])
        if block is None:
            self._fail(number, recorded=True)
            return
        self.addresses.append(block.address)
        self.allocator.allocated -= block.size
        self.allocator.free_block(block)

    def _fail(self, number: int, *, recorded: bool) -> None:
        self.addresses.append(-1)
        steps = np.flatnonzero((self.program.argument == number) & np.isin(self.program.op, _REQUESTS))
        self.failures.append(
            Failure(
                request=number,
                entry=int(self.program.entry[steps[0]]),
                requested=int(self.program.size[number]),
                reserved=self.allocator.reserved,
                alloc_size=allocation_size(self.sizes[number], self.allocator.config),
                recorded=recorded,
            )
        )


_REQUESTS = (Op.MALLOC, Op.TRY_MALLOC)


def _codes(program: Program) -> list[int]:
    """Each step as one integer: a request's number, its complement for a free, and above them the rare steps."""
    codes = program.requests + np.arange(len(program.op))
    codes = np.where(program.op == Op.MALLOC, program.argument, codes)
    codes = np.where(program.op == Op.FREE, ~program.argument, codes)
    result: list[int] = codes.tolist()
    return result


def _homes(
    allocator: DeviceCachingAllocator, program: Program, rounded: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> list[StreamPool]:
    """The free blocks that serve each request."""
    streams, stream = np.unique(program.stream, return_inverse=True)
    kinds = (program.owner * len(streams) + stream) * 2 + (rounded <= SMALL_SIZE)
    distinct, which = np.unique(kinds, return_inverse=True)
    pools = []
    for kind in distinct.tolist():
        owner, row = divmod(kind // 2, len(streams))
        pools.append(allocator.get_pool(kind % 2 == 1, int(streams[row]), owner))
    return list(map(pools.__getitem__, which.tolist()))
