"""What holds of the allocator whatever it is asked."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from oomscope.allocator import AllocatorConfig, allocation_size, round_size
from oomscope.allocator.addresses import Ascending, Descending, Shuffled
from oomscope.allocator.block import Block
from oomscope.allocator.device import DeviceCachingAllocator
from oomscope.allocator.limits import Limit
from tests.allocator.states import check, homes

MIB = 1 << 20

CONFIGS = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:24",
    "max_split_size_mb:64,max_non_split_rounding_mb:32",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.5",
    "expandable_segments:True,max_split_size_mb:32,garbage_collection_threshold:0.4",
]
LIMITS = [Limit(), Limit(cap=300 * MIB), Limit(cap=120 * MIB), Limit(capacity=200 * MIB, device_total=256 * MIB)]
SIZES = st.integers(1, 3 * MIB) | st.integers(1, 90 * MIB) | st.sampled_from([MIB, 2 * MIB, 10 * MIB, 20 * MIB])


class Requests(RuleBasedStateMachine):
    """Any sequence of requests, frees and releases."""

    @initialize(
        conf=st.sampled_from(CONFIGS),
        limit=st.sampled_from(LIMITS),
        order=st.sampled_from([Ascending, Descending, lambda: Shuffled(3)]),
        capturing=st.booleans(),
    )
    def begin(self, conf: str, limit: Limit, order: Any, capturing: bool) -> None:
        self.config = AllocatorConfig.parse(conf)
        self.allocator = DeviceCachingAllocator(self.config, limit, order(), {1} if capturing else ())
        self.live: list[Block] = []
        self.numbers = 0

    @rule(size=SIZES, stream=st.sampled_from([0, 7]), owner=st.sampled_from([0, 0, 0, 1]))
    def malloc(self, size: int, stream: int, owner: int) -> None:
        rounded = round_size(size, self.config)
        home = self.allocator.get_pool(rounded <= MIB, stream, owner)
        retries = self.allocator.num_alloc_retries
        block = self.allocator.malloc(rounded, home)
        if block is None:
            bound = min(self.allocator.allowed_memory_maximum, self.allocator.capacity)
            assert self.allocator.reserved + max(allocation_size(rounded, self.config), 20 * MIB) > bound
            assert home.pool.is_capturing or self.allocator.num_alloc_retries == retries + 1
            return
        assert block.size >= rounded
        assert block.home is home
        assert not block.is_free
        self.live.append(block)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        block = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        self.allocator.allocated -= block.size
        self.allocator.free_block(block)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def free_while_another_stream_uses_it(self, data: st.DataObject) -> None:
        block = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        self.numbers += 1
        self.allocator.free_requested(self.numbers, block)

    @precondition(lambda self: self.allocator.pending)
    @rule(data=st.data())
    def complete_a_free(self, data: st.DataObject) -> None:
        self.allocator.free_completed(data.draw(st.sampled_from(sorted(self.allocator.pending))))

    @rule()
    def empty_cache(self) -> None:
        self.allocator.empty_cache()
        assert not self.allocator.pending
        for home in homes(self.allocator):
            for block in home.blocks:
                if home.pool.owner == 0 and block.segment is None:
                    assert block.is_split, "no whole segment of the default pool stays"
                elif home.pool.owner == 0:
                    first = -(-(block.address - block.segment.base) // block.segment.page)
                    last = (block.end - block.segment.base) // block.segment.page
                    assert first >= last, "no whole page stays"

    @precondition(lambda self: self.live)
    @rule()
    def free_everything_and_empty_the_cache(self) -> None:
        for block in self.live:
            self.allocator.allocated -= block.size
            self.allocator.free_block(block)
        self.live.clear()
        self.allocator.freeable_pools[:] = [1]
        self.allocator.empty_cache()
        assert self.allocator.reserved == 0
        assert self.allocator.allocated == 0
        self.allocator.freeable_pools.clear()

    @invariant()
    def everything_adds_up(self) -> None:
        if hasattr(self, "allocator"):
            check(self.allocator, self.live)


Requests.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestRequests = Requests.TestCase
