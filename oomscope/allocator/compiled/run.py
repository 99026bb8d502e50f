"""Taking the steps of a program on columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.compiled import core
from oomscope.allocator.compiled.columns import ColumnBlock, Held
from oomscope.allocator.compiled.device import CompiledAllocator
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.initial import restore
from oomscope.allocator.limits import NO_LIMIT, Limit
from oomscope.allocator.plain import Prepared, rounding_of
from oomscope.allocator.program import Op, Program
from oomscope.allocator.repeats import Forms, Standing
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
        done = CompiledRun(Prepared(Forms(program).form(()), ()), config, NO_LIMIT, None, note_addresses=True)
        done.steps(0, len(op), stop_at_failure=False)
        if (done.allocator.peak_allocated, done.allocator.reserved) != (38 << 20, 0):
            raise ReplayError("The compiled core is not what it should be.")


class CompiledRun:
    """The state of one replay, as `PlainRun` is another.

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
        program = prepared.program
        noted = int(np.count_nonzero(program.asks)) if note_addresses else 0
        self.allocator = CompiledAllocator(
            config, limit, addresses, prepared.capturing, requests=program.requests, noted=noted
        )
        self.refused: list[tuple[int, bool, int]] = []
        self.taken = 0
        self._become(prepared)
        if program.initial is not None:
            restore(self.allocator, program.initial, Held(self.allocator.store))

    def _become(self, prepared: Prepared) -> None:
        self.prepared, program = prepared, prepared.program
        self._op, self._argument = np.ascontiguousarray(program.op), np.ascontiguousarray(program.argument)
        config, store = self.allocator.config, self.allocator.store
        rounding = rounding_of(config)
        if rounding not in prepared.columns:
            prepared.columns[rounding] = requests_of(program, config)
        requests: Requests = prepared.columns[rounding]
        homes = np.array([self.allocator.get_pool(*kind).number for kind in requests.kinds], np.int64)
        request = store.state.request
        request[:, core.WANTED], request[:, core.FROM] = requests.rounded, homes[requests.kind]

    def steps(self, begin: int, end: int, stop_at_failure: bool) -> bool:
        """Take the steps from `begin` to `end`; False where the program ends before."""
        op, argument, store = self._op[:end], self._argument[:end], self.allocator.store
        step, why = begin, core.NEEDS_ROOM
        while why != core.DONE:
            store.note_unmapped()
            step, why = core.take(store.state, op, argument, step)
            if why == core.NEEDS_ROOM:
                store.make_room()
            elif why == core.NEEDS_DEVICE:
                goes_on = self._ask_the_device(int(argument[step]), op[step] == Op.TRY_MALLOC, stop_at_failure)
                step += 1
                if not goes_on:
                    self.taken = step
                    return False
            elif why == core.RARE:
                self._rare_step(Op(op[step]), int(argument[step]))
                step += 1
        self.taken = end
        return True

    def addresses(self) -> IntArray:
        """Where the blocks of the requests so far lay."""
        state = self.allocator.store.state
        return state.noted[: state.number[core.NOTED]]

    def standing(self) -> Standing:
        """What the allocator holds."""
        allocator, store = self.allocator, self.allocator.store
        rows = store.state.request[:, core.HELD]
        held = np.flatnonzero(rows >= 0)
        return Standing(
            changes=(len(allocator.segment_events), allocator.num_alloc_retries),
            free=[home.keys for home in store.homes],
            held=held,
            places=store.state.block[rows[held]][:, [core.ADDRESS, core.SIZE]],
        )

    def go_on_as(self, prepared: Prepared) -> None:
        """Take further steps from `prepared`, whose first steps and requests are those so far."""
        self.allocator.store.add_requests(prepared.program.requests - self.prepared.program.requests)
        self._become(prepared)

    def let_go(self) -> None:
        """Drop what only steps need."""
        self.allocator.store.let_go()

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
