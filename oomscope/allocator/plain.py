"""Taking the steps of a program on objects."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.block import ADDRESS_BITS, Block, StreamPool
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.device import DeviceCachingAllocator
from oomscope.allocator.initial import restore
from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Op, Program
from oomscope.allocator.repeats import Folded, Standing
from oomscope.allocator.rounding import SMALL_SIZE, round_sizes
from oomscope.frozen import frozen
from oomscope.model import IntArray
from oomscope.model.ordering import numbered

Rounding: TypeAlias = tuple[int, tuple[int, ...]]
"""What decides how sizes are rounded: padding and divisions."""

Request: TypeAlias = tuple[int, StreamPool, int]
"""Rounded size, where to look, and the least key of a block that is large enough."""


class Prepared:
    """A program with what all its replays need, made once.

    Attributes:
        folded: what of the whole program it is.
        capturing: the private pools whose requests come while a CUDA graph is captured.
        columns: for the compiled core, by how sizes are rounded.
    """

    def __init__(self, folded: Folded, capturing: Collection[int]) -> None:
        self.folded = folded
        self.capturing = capturing
        self.columns: dict[Rounding, Any] = {}
        self._tables: dict[Rounding, list[tuple[int, bool, int, int]]] = {}

    @property
    def program(self) -> Program:
        """The program itself."""
        return self.folded.program

    @cached_property
    def codes(self) -> list[int]:
        """Each step as one integer: a request's number, its complement for a free, and above them the rare steps."""
        program = self.program
        codes = program.requests + np.arange(len(program.op))
        codes = np.where(program.op == Op.MALLOC, program.argument, codes)
        codes = np.where(program.op == Op.FREE, ~program.argument, codes)
        result: list[int] = codes.tolist()
        return result

    def requests(self, allocator: DeviceCachingAllocator) -> list[Request]:
        """What `allocator` is asked for, by number; equal requests are one object, for the sake of the cache."""
        config = allocator.config
        if (rounding := rounding_of(config)) not in self._tables:
            size, owner, stream = self._kinds.columns
            rounded = round_sizes(size, config)
            rows = zip(rounded.tolist(), (rounded <= SMALL_SIZE).tolist(), stream.tolist(), owner.tolist(), strict=True)
            self._tables[rounding] = list(rows)
        table = self._tables[rounding]
        requests = [
            (size, allocator.get_pool(is_small, stream, owner), size << ADDRESS_BITS)
            for size, is_small, stream, owner in table
        ]
        return list(map(requests.__getitem__, self._kinds.of_request))

    @cached_property
    def _kinds(self) -> _Kinds:
        program = self.program
        streams, stream = numbered(program.stream)
        owners = int(program.owner.max(initial=0)) + 1
        distinct, which = numbered((program.size * owners + program.owner) * max(len(streams), 1) + stream)
        size_and_owner, stream_row = np.divmod(distinct, max(len(streams), 1))
        size, owner = np.divmod(size_and_owner, owners)
        return _Kinds((size, owner, streams[stream_row]), which.tolist())


@frozen(eq=False)
class _Kinds:
    """The distinct requests: size, owner and stream of each; and which of them each request is."""

    columns: tuple[IntArray, IntArray, IntArray]
    of_request: list[int]


class PlainRun:
    """The state of one replay.

    Attributes:
        refused: requests that could not be served; whether the recorded run was refused them; what was missing.
        taken: how many steps were taken.
    """

    def __init__(
        self,
        prepared: Prepared,
        config: AllocatorConfig,
        limit: Limit,
        addresses: Addresses | None,
        note_addresses: bool,
    ) -> None:
        """Begin with what the recording found; see `Replayer.run`."""
        self.allocator = DeviceCachingAllocator(config, limit, addresses, prepared.capturing)
        self.prepared = prepared
        self.requests = prepared.requests(self.allocator)
        self.blocks: list[Block | None] = [None] * prepared.program.requests
        self.refused: list[tuple[int, bool, int]] = []
        self.taken = 0
        self._noted: list[int] | None = [] if note_addresses else None
        if prepared.program.initial is not None:
            restore(self.allocator, prepared.program.initial, self.blocks)

    def steps(self, begin: int, end: int, stop_at_failure: bool) -> bool:
        """Take the steps from `begin` to `end`; False where the program ends before."""
        codes = self.prepared.codes
        with _collector_paused():
            goes_on = self._steps(codes if end - begin == len(codes) else codes[begin:end], stop_at_failure)
        self.taken = end if goes_on else self._step_of(self.refused[-1][0]) + 1
        return goes_on

    def _steps(self, codes: list[int], stop_at_failure: bool) -> bool:
        """Take steps. The two that make up nearly all of a program are told apart by their sign alone."""
        allocator, blocks, requests, addresses = self.allocator, self.blocks, self.requests, self._noted
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
                    return False
                if addresses is not None:
                    addresses.append(block.address)
            else:
                self._rare_step(code - rare)
                if stop_at_failure and self.refused:
                    return False
        return True

    def addresses(self) -> IntArray:
        """Where the blocks of the requests so far lay."""
        return np.array(self._noted or [], np.int64)

    def standing(self) -> Standing:
        """What the allocator holds."""
        allocator = self.allocator
        held = [number for number, block in enumerate(self.blocks) if block is not None]
        blocks = [block for block in self.blocks if block is not None]
        return Standing(
            changes=(len(allocator.segment_events), allocator.num_alloc_retries),
            free=[home.keys.copy() for pool in allocator.pools.values() for home in pool.streams.values()],
            held=np.array(held, np.int64),
            places=np.array([(block.address, block.size) for block in blocks], np.int64),
        )

    def go_on_as(self, prepared: Prepared) -> None:
        """Take further steps from `prepared`, whose first steps and requests are those so far."""
        self.prepared = prepared
        self.requests = prepared.requests(self.allocator)
        self.blocks += [None] * (prepared.program.requests - len(self.blocks))

    def let_go(self) -> None:
        """Nothing: what only steps need goes with this."""

    def _step_of(self, request: int) -> int:
        return int(np.flatnonzero(self.prepared.program.asks_for(request))[0])

    def _rare_step(self, step: int) -> None:
        program, allocator = self.prepared.program, self.allocator
        op, argument = int(program.op[step]), int(program.argument[step])
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
        if self._noted is not None:
            self._noted.append(block.address)
        self.allocator.allocated -= block.size
        self.allocator.free_block(block)

    def _fail(self, number: int, *, recorded: bool) -> None:
        if self._noted is not None:
            self._noted.append(-1)
        self.refused.append((number, recorded, self.allocator.missing))


def rounding_of(config: AllocatorConfig) -> Rounding:
    """What of the settings decides how sizes are rounded."""
    return config.padding, config.roundup_power2_divisions


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
