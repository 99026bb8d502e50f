"""What a program asked of its allocator, free of the addresses and segments that it got."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

import numpy as np

from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray, Layout, PoolId, UInt8Array


class Op(IntEnum):
    """One step of a program. A request has a number, and later steps name it."""

    MALLOC = 0
    FREE = 1
    """free_requested and, at once, free_completed."""
    FREE_REQUESTED = 2
    FREE_COMPLETED = 3
    TRY_MALLOC = 4
    """A request that the recorded run was refused. Where it is served, its block is freed again before the next step,
    for the recorded program went on without it."""
    EMPTY_CACHE = 5
    POOL_FREEABLE = 6
    """The owner of private pool `argument` is gone: its segments may be released."""


@frozen(eq=False)
class InitialLayout:
    """What the recording found when it began.

    Attributes:
        layout: segments and blocks. A block's size is what the allocator gave it.
        number: int64[blocks]; the request that each active block stands for, -1 for free ones.
        base: int64[segments]; the lowest address known of the expandable segment that each is part of, its own for
            the others.
    """

    layout: Layout
    number: IntArray
    base: IntArray


@frozen(eq=False)
class Program:
    """Requests, and the order in which they are made and given back.

    Attributes:
        size: int64[requests], bytes asked for.
        stream: int64[requests], the raw stream.
        owner: int64[requests], the private pool it belongs to, as a number in `pools`; 0 the default pool.
        op: uint8[steps], `Op`.
        argument: int64[steps], the number of the request (of the pool for `POOL_FREEABLE`).
        entry: int64[steps], the trace entry that the step comes from.
        pools: the ids of the pools.
        initial: what was there before the first step; requests in it have numbers, but no `MALLOC`.
    """

    size: IntArray
    stream: IntArray
    owner: IntArray
    op: UInt8Array
    argument: IntArray
    entry: IntArray
    pools: tuple[PoolId, ...] = ((0, 0),)
    initial: InitialLayout | None = None

    @property
    def requests(self) -> int:
        """How many requests there are, those of the initial layout included."""
        return len(self.size)

    @property
    def asks(self) -> BoolArray:
        """bool[steps]: which are requests."""
        found: BoolArray = (self.op == Op.MALLOC) | (self.op == Op.TRY_MALLOC)
        return found

    @property
    def about_requests(self) -> BoolArray:
        """bool[steps]: of which the argument is the number of a request."""
        found: BoolArray = (self.op != Op.EMPTY_CACHE) & (self.op != Op.POOL_FREEABLE)
        return found

    def asks_for(self, request: int) -> BoolArray:
        """bool[steps]: where a request is made."""
        found: BoolArray = self.asks & (self.argument == request)
        return found

    def gives_back_at_once(self, request: int) -> bool:
        """Whether nothing is done between a request and its free, as with the workspace of a convolution."""
        steps = np.flatnonzero((self.argument == request) & (self.op != Op.POOL_FREEABLE))
        return len(steps) > 1 and bool(steps[1] == steps[0] + 1)

    def replaced_compactly(self) -> Program:
        """The program that first asks anew for what the initial layout holds, in the order of addresses.

        What the recording found in place was laid out under the recorded setting; under another it would lie elsewhere.
        """
        if self.initial is None:
            return self
        held = self.initial.number[self.initial.number >= 0]
        begin = np.full(len(held), -1, np.int64)
        return replace(
            self,
            op=np.concatenate([np.full(len(held), Op.MALLOC, np.uint8), self.op]),
            argument=np.concatenate([held, self.argument]),
            entry=np.concatenate([begin, self.entry]),
            initial=None,
        )

    def with_steps(self, op: Op, entries: IntArray, arguments: IntArray | int = -1) -> Program:
        """The program with a step `op` before the first step of each of `entries`, which ascend."""
        at = np.searchsorted(self.entry, entries)
        return replace(
            self,
            op=np.insert(self.op, at, op),
            argument=np.insert(self.argument, at, arguments),
            entry=np.insert(self.entry, at, entries),
        )

    def without_steps(self, dropped: BoolArray) -> Program:
        """The program without the steps that are `dropped`."""
        return replace(self, op=self.op[~dropped], argument=self.argument[~dropped], entry=self.entry[~dropped])

    def keep(self, kept: BoolArray) -> Program:
        """The program without the requests that are not `kept`, nor anything that is done with them."""
        about_requests = self.about_requests
        dropped = np.zeros(len(self.op), np.bool_)
        dropped[about_requests] = ~kept[self.argument[about_requests]]
        return self.without_steps(dropped)
