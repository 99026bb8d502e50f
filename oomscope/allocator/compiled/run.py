"""Taking the steps of a program on columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.compiled import core
from oomscope.allocator.compiled.columns import ColumnBlock, Held
from oomscope.allocator.compiled.device import CompiledAllocator
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.initial import restore
from oomscope.allocator.limits import NO_LIMIT, Limit
from oomscope.allocator.program import Op, Program
from oomscope.allocator.rounding import SMALL_SIZE, round_sizes
from oomscope.errors import ReplayError
from oomscope.model import IntArray
from oomscope.model.ordering import numbered


class Requests(NamedTuple):
    """What the requests of a program ask for under some settings.

    Attributes:
        rounded: int64[requests], bytes.
        kind: int64[requests], the row of each in `kinds`.
        kinds: the distinct (is small, stream, owner).
    """

    rounded: IntArray
    kind: IntArray
    kinds: list[tuple[bool, int, int]]


def requests_of(program: Program, config: AllocatorConfig) -> Requests:
    """The same for all settings that round alike."""
    rounded = round_sizes(program.size, config)
    streams, stream = numbered(program.stream)
    owners = int(program.owner.max(initial=0)) + 1
    wide = (stream * owners + program.owner) * 2 + (rounded <= SMALL_SIZE)
    present = np.bincount(wide, minlength=1) > 0
    kinds = [
        (bool(one % 2), int(streams[one // 2 // owners]), one // 2 % owners) for one in np.flatnonzero(present).tolist()
    ]
    return Requests(rounded, (np.cumsum(present) - 1)[wide], kinds)


def run(
    program: Program,
    requests: Requests,
    capturing: Collection[int],
    config: AllocatorConfig,
    limit: Limit,
    addresses: Addresses | None,
    stop_at_failure: bool,
    note_addresses: bool,
) -> CompiledRun:
    """Run a program once; see `Replayer.run`."""
    asked = np.count_nonzero((program.op == Op.MALLOC) | (program.op == Op.TRY_MALLOC)) if note_addresses else 0
    allocator = CompiledAllocator(config, limit, addresses, capturing, requests=program.requests, noted=int(asked))
    homes = np.array([allocator.get_pool(*kind).number for kind in requests.kinds], np.int64)
    request = allocator.store.state.request
    request[:, core.WANTED], request[:, core.FROM] = requests.rounded, homes[requests.kind]
    done = CompiledRun(allocator, program)
    done.steps(stop_at_failure)
    return done


def try_out() -> None:
    """Compile everything, for numba does so only when something is called; raises whatever does not work."""
    count = 3
    op = [Op.MALLOC] * count + [Op.FREE, Op.FREE_REQUESTED, Op.EMPTY_CACHE, Op.FREE, Op.FREE_COMPLETED, Op.EMPTY_CACHE]
    program = Program(
        size=np.array([3, 5, 30], np.int64) << 20,
        stream=np.zeros(count, np.int64),
        owner=np.zeros(count, np.int64),
        op=np.array(op, np.uint8),
        argument=np.array([0, 1, 2, 0, 1, -1, 2, 1, -1], np.int64),
        entry=np.arange(len(op)),
    )
    for config in (AllocatorConfig(), AllocatorConfig(expandable_segments=True)):
        done = run(program, requests_of(program, config), (), config, NO_LIMIT, None, False, True)
        if (done.allocator.peak_allocated, done.allocator.reserved) != (38 << 20, 0):
            raise ReplayError("The compiled core is not what it should be.")


class CompiledRun:
    """The state of one replay.

    Attributes:
        refused: requests that could not be served; whether the recorded run was refused them; what was missing.
    """

    def __init__(self, allocator: CompiledAllocator, program: Program) -> None:
        """Begin with what the recording found.

        Args:
            allocator: with nothing reserved, and told of the requests.
            program: what is asked for.
        """
        self.allocator = allocator
        self.program = program
        self.refused: list[tuple[int, bool, int]] = []
        if program.initial is not None:
            restore(allocator, program.initial, Held(allocator.store))

    def steps(self, stop_at_failure: bool) -> None:
        """Take every step, or those up to the first failure that ends the program."""
        program, store = self.program, self.allocator.store
        op, argument = np.ascontiguousarray(program.op), np.ascontiguousarray(program.argument)
        step, why = 0, core.NEEDS_ROOM
        while why != core.DONE:
            store.note_unmapped()
            step, why = core.take(store.state, op, argument, step)
            if why == core.NEEDS_ROOM:
                store.make_room()
            elif why == core.NEEDS_DEVICE:
                if not self._ask_the_device(int(argument[step]), op[step] == Op.TRY_MALLOC, stop_at_failure):
                    return
                step += 1
            elif why == core.RARE:
                self._rare_step(Op(op[step]), int(argument[step]))
                step += 1

    def addresses(self) -> list[int]:
        """Where the blocks of the requests so far lay."""
        state = self.allocator.store.state
        found: list[int] = state.noted[: state.number[core.NOTED]].tolist()
        return found

    def _ask_the_device(self, request: int, is_tried: bool, stop_at_failure: bool) -> bool:
        """Serve a request for which no block is cached; whether the program goes on."""
        allocator, store = self.allocator, self.allocator.store
        size, home = store.state.request[request, [core.WANTED, core.FROM]].tolist()
        block = allocator.malloc_new(size, store.homes[home])
        if block is not None:
            assert isinstance(block, ColumnBlock)
            store.make_room(home)
            core.keep_served(store.state, request, block.row, is_tried)
            return True
        self.refused.append((request, is_tried, allocator.missing))
        # What is noted stays -1.
        store.state.number[core.NOTED] += 1
        return is_tried and not stop_at_failure

    def _rare_step(self, op: Op, argument: int) -> None:
        if op == Op.EMPTY_CACHE:
            self.allocator.empty_cache()
        else:
            self.allocator.freeable_pools.append(argument)
