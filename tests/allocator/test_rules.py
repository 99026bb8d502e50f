"""The rules of the allocator, one by one, under the names they have in torch."""

from __future__ import annotations

from dataclasses import replace

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.addresses import Ascending, Descending
from oomscope.allocator.block import Block
from oomscope.allocator.device import DeviceCachingAllocator
from oomscope.allocator.limits import Limit
from oomscope.allocator.rounding import SMALL_SIZE, round_size
from oomscope.model import Action

KIB, MIB = 1 << 10, 1 << 20


class Device:
    """An allocator with the calls that tests make."""

    def __init__(self, conf: str = "", **limit: int) -> None:
        self.config = AllocatorConfig.parse(conf)
        self.allocator = DeviceCachingAllocator(self.config, Limit(**limit), Ascending())

    def malloc(self, size: int, stream: int = 0, owner: int = 0) -> Block | None:
        rounded = round_size(size, self.config)
        return self.allocator.malloc(rounded, self.allocator.get_pool(rounded <= SMALL_SIZE, stream, owner))

    def take(self, size: int, stream: int = 0, owner: int = 0) -> Block:
        block = self.malloc(size, stream, owner)
        assert block is not None
        return block

    def free(self, *blocks: Block) -> None:
        for block in blocks:
            self.allocator.allocated -= block.size
            self.allocator.free_block(block)

    @property
    def events(self) -> list[tuple[Action, int]]:
        return [(action, size // MIB) for action, _, size in self.allocator.segment_events]


# get_pool, get_allocation_size


def test_small_requests_share_segments_of_2_mib_and_large_ones_of_20() -> None:
    device = Device()
    small, other = device.take(1), device.take(MIB)
    large, big = device.take(MIB + 1), device.take(31 * MIB)
    assert other.address == small.end
    assert device.events == [(Action.SEGMENT_ALLOC, size) for size in (2, 20, 32)]
    assert large.home is big.home is not small.home


def test_each_stream_has_its_own_blocks() -> None:
    device = Device()
    device.free(device.take(5 * MIB, stream=1))
    device.take(5 * MIB, stream=2)
    assert device.events == [(Action.SEGMENT_ALLOC, 20)] * 2


# get_free_block


def test_the_smallest_block_that_is_large_enough_is_taken() -> None:
    device = Device()
    blocks = {size: device.take(size * MIB) for size in (40, 12, 24)}
    addresses = {size: block.address for size, block in blocks.items()}
    device.free(*blocks.values())
    assert device.take(11 * MIB).address == addresses[12]
    assert device.take(13 * MIB).address == addresses[24]


def test_among_equal_blocks_the_lowest_address_is_taken() -> None:
    for order, lowest in ((Ascending(), 0), (Descending(), 2)):
        device = Device()
        device.allocator.addresses = order
        blocks = [device.take(12 * MIB) for _ in range(3)]
        device.free(*blocks)
        assert device.take(12 * MIB).address == blocks[lowest].address


def test_a_request_below_max_split_size_never_takes_a_block_above_it() -> None:
    device = Device("max_split_size_mb:100")
    device.free(device.take(200 * MIB))
    device.take(50 * MIB)
    assert device.events == [(Action.SEGMENT_ALLOC, 200), (Action.SEGMENT_ALLOC, 50)]


def test_a_request_above_max_split_size_takes_a_block_that_is_less_than_20_mib_larger() -> None:
    for size, fits in ((181, True), (180, False)):
        device = Device("max_split_size_mb:100")
        device.free(device.take(200 * MIB))
        block = device.take(size * MIB)
        assert (block.size == 200 * MIB) is fits


def test_only_the_best_fit_is_judged() -> None:
    device = Device("max_split_size_mb:100")
    oversized, fitting = device.take(140 * MIB), device.take(150 * MIB)
    device.free(oversized, fitting)
    # 140 MiB is the best fit and is 20 MiB too large; 150 MiB would be as well, and nothing else is looked at.
    device.take(120 * MIB)
    assert device.events[-1] == (Action.SEGMENT_ALLOC, 120)


# should_split, alloc_found_block


def test_the_head_is_handed_out_and_the_tail_stays_free() -> None:
    device = Device()
    device.free(device.take(40 * MIB))
    block = device.take(11 * MIB)
    assert block.next is not None
    assert (block.next.is_free, block.next.address, block.next.size) == (True, block.end, 29 * MIB)


def test_a_large_block_keeps_a_rest_of_1_mib_and_it_counts_as_allocated() -> None:
    device = Device()
    device.free(device.take(12 * MIB))
    assert device.take(11 * MIB).size == 12 * MIB
    assert device.allocator.allocated == 12 * MIB


# free_block, try_merge_blocks


def test_a_freed_block_merges_with_both_neighbours() -> None:
    device = Device()
    first, second, third = (device.take(5 * MIB) for _ in range(3))
    device.free(first, third)
    device.free(second)
    assert second.home.blocks == [second]
    assert (second.size, second.is_split) == (20 * MIB, False)


def test_a_block_that_another_stream_uses_is_not_merged_until_it_is_free() -> None:
    device = Device()
    first, second = device.take(5 * MIB), device.take(5 * MIB)
    device.allocator.free_requested(0, first)
    device.free(second)
    assert device.allocator.allocated == 0
    assert [block.size for block in second.home.blocks] == [15 * MIB]
    device.allocator.free_completed(0)
    assert [block.size for block in second.home.blocks] == [20 * MIB]


# alloc_block, release_cached_blocks


def test_under_a_cap_cached_blocks_are_released_before_a_request_fails() -> None:
    device = Device(cap=40 * MIB)
    device.free(device.take(30 * MIB))
    device.take(40 * MIB)
    assert device.events == [(Action.SEGMENT_ALLOC, 30), (Action.SEGMENT_FREE, 30), (Action.SEGMENT_ALLOC, 40)]
    assert device.allocator.num_alloc_retries == 1
    assert device.malloc(2 * MIB) is None
    assert device.allocator.num_alloc_retries == 2


def test_a_segment_that_is_in_use_in_part_is_not_released() -> None:
    device = Device(cap=60 * MIB)
    part, _ = device.take(5 * MIB), device.take(5 * MIB)
    whole = device.take(30 * MIB)
    device.free(part, whole)
    assert device.malloc(41 * MIB) is None
    assert device.events[2:] == [(Action.SEGMENT_FREE, 30)]
    assert device.allocator.reserved == 20 * MIB


def test_a_retry_waits_for_blocks_that_other_streams_use() -> None:
    device = Device(cap=40 * MIB)
    device.allocator.free_requested(0, device.take(30 * MIB))
    assert device.malloc(20 * MIB) is not None
    assert not device.allocator.pending
    device.allocator.free_completed(0)
    assert device.allocator.reserved == 20 * MIB


def test_segments_go_in_torchs_order_large_pool_first_then_by_stream_size_and_address() -> None:
    device = Device()
    blocks = [device.take(size, stream) for size, stream in ((KIB, 0), (30 * MIB, 5), (40 * MIB, 0), (30 * MIB, 0))]
    device.free(*blocks)
    device.allocator.empty_cache()
    assert device.events[4:] == [(Action.SEGMENT_FREE, size) for size in (30, 40, 30, 2)]


def test_nothing_is_released_while_a_graph_is_captured() -> None:
    allocator = DeviceCachingAllocator(AllocatorConfig(), Limit(cap=40 * MIB), Ascending(), {1})
    default, private = allocator.get_pool(False, 0), allocator.get_pool(False, 0, 1)
    block = allocator.malloc(30 * MIB, default)
    assert block is not None
    allocator.allocated -= block.size
    allocator.free_block(block)
    assert allocator.malloc(20 * MIB, private) is None
    assert allocator.num_alloc_retries == 0
    assert allocator.malloc(40 * MIB, default) is not None


def test_private_pools_keep_their_segments_until_their_owner_is_gone() -> None:
    device = Device()
    device.free(device.take(30 * MIB, owner=1), device.take(30 * MIB))
    device.allocator.empty_cache()
    assert device.allocator.reserved == 30 * MIB
    device.allocator.freeable_pools.append(1)
    device.allocator.empty_cache()
    assert device.allocator.reserved == 0


def test_a_physical_limit_counts_what_is_obtained_not_what_is_asked() -> None:
    capped, full = (
        Device("expandable_segments:True", cap=60 * MIB),
        Device("expandable_segments:True", capacity=60 * MIB),
    )
    for device in (capped, full):
        device.free(device.take(39 * MIB))
    # 50 MiB need one more page of 20 MiB. The cap is compared with 40 + 50 MiB all the same.
    full.take(50 * MIB)
    assert full.allocator.num_alloc_retries == 0
    capped.take(50 * MIB)
    assert capped.allocator.num_alloc_retries == 1


# release_available_cached_blocks


def test_under_max_split_size_one_oversize_block_is_released_first() -> None:
    device = Device("max_split_size_mb:100", cap=520 * MIB)
    device.free(*(device.take(size * MIB) for size in (210, 300)))
    device.take(150 * MIB)
    assert device.events[2:] == [(Action.SEGMENT_FREE, 210), (Action.SEGMENT_ALLOC, 150)]
    assert device.allocator.num_alloc_retries == 0


def test_where_no_single_one_suffices_the_largest_go_until_it_is_enough() -> None:
    device = Device("max_split_size_mb:100", cap=400 * MIB)
    device.free(*(device.take(size * MIB) for size in (110, 150, 130)))
    device.take(250 * MIB)
    assert device.events[3:] == [(Action.SEGMENT_FREE, 150), (Action.SEGMENT_FREE, 130), (Action.SEGMENT_ALLOC, 250)]
    assert device.allocator.num_alloc_retries == 0


# garbage_collect_cached_blocks


def test_above_the_threshold_the_oldest_segments_are_collected() -> None:
    device = Device("garbage_collection_threshold:0.5", cap=200 * MIB)
    old, young = device.take(60 * MIB), device.take(40 * MIB)
    device.free(old)
    device.take(4 * MIB, stream=1)  # grows the age of what is free
    device.free(young)
    # 120 MiB are reserved, the threshold is 100 MiB: the block of 60 MiB is older than the average of the two.
    device.take(70 * MIB)
    assert device.events[3:] == [(Action.SEGMENT_FREE, 60), (Action.SEGMENT_ALLOC, 70)]


def test_a_block_is_young_again_when_it_was_used() -> None:
    device = Device("garbage_collection_threshold:0.5", cap=200 * MIB)
    first, second = device.take(60 * MIB), device.take(40 * MIB)
    device.free(first, second)
    device.take(4 * MIB, stream=1)
    device.free(device.take(60 * MIB))
    device.take(70 * MIB)
    assert device.events[3:] == [(Action.SEGMENT_FREE, 40), (Action.SEGMENT_ALLOC, 70)]


def test_below_the_threshold_nothing_is_collected() -> None:
    device = Device("garbage_collection_threshold:0.5", cap=200 * MIB)
    device.free(device.take(60 * MIB))
    device.take(70 * MIB)
    assert all(action is Action.SEGMENT_ALLOC for action, _ in device.events)


def test_without_a_cap_nothing_is_collected() -> None:
    device = Device("garbage_collection_threshold:0.1", capacity=200 * MIB)
    device.free(*(device.take(size * MIB) for size in (30, 40, 50)))
    device.take(60 * MIB)
    assert all(action is Action.SEGMENT_ALLOC for action, _ in device.events)


# try_allocate_expandable_block, map_block, unmap_block


def test_an_expandable_segment_maps_only_what_is_missing() -> None:
    device = Device("expandable_segments:True")
    first, second = device.take(15 * MIB), device.take(30 * MIB)
    assert second.address == first.end
    assert device.events == [(Action.SEGMENT_MAP, 20), (Action.SEGMENT_MAP, 40)]
    assert device.allocator.reserved == 60 * MIB


def test_small_pages_are_2_mib() -> None:
    device = Device("expandable_segments:True")
    device.take(KIB)
    assert device.events == [(Action.SEGMENT_MAP, 2)]


def test_only_whole_pages_are_unmapped_and_what_is_left_of_them_stays_free() -> None:
    device = Device("expandable_segments:True")
    first, second, third = device.take(30 * MIB), device.take(60 * MIB), device.take(30 * MIB)
    device.free(second)
    device.allocator.empty_cache()
    assert device.events[-1] == (Action.SEGMENT_UNMAP, 40)
    assert sorted(block.size // MIB for block in second.home.blocks) == [10, 10]
    assert first.end == second.home.blocks[0].address
    assert third.prev is second.home.blocks[1]


def test_unmapped_pages_are_mapped_again_before_the_segment_grows() -> None:
    device = Device("expandable_segments:True")
    base = device.take(20 * MIB)
    hole, end = device.take(40 * MIB), device.take(20 * MIB)
    device.free(hole)
    device.allocator.empty_cache()
    assert device.take(40 * MIB).address == base.end
    assert device.take(20 * MIB).address == end.end


def test_a_hole_that_is_too_small_is_passed_over() -> None:
    device = Device("expandable_segments:True")
    device.take(20 * MIB)
    hole, end = device.take(20 * MIB), device.take(20 * MIB)
    device.free(hole)
    device.allocator.empty_cache()
    assert device.take(40 * MIB).address == end.end


def test_best_fit_is_by_the_size_to_which_a_block_can_grow() -> None:
    device = Device("expandable_segments:True")
    hole = device.take(60 * MIB)
    device.take(20 * MIB)
    tail = device.take(30 * MIB)
    begin = hole.address
    device.free(tail, hole)
    # The tail, 30 MiB, is the smaller block, but it can grow on; so the hole of 60 MiB is taken.
    assert device.take(30 * MIB).address == begin


def test_an_expandable_segment_that_is_wholly_unmapped_is_given_up() -> None:
    device = Device("expandable_segments:True")
    block = device.take(30 * MIB)
    device.free(block)
    device.allocator.empty_cache()
    assert device.allocator.reserved == 0
    assert not block.home.unmapped
    assert not block.home.blocks
    device.take(30 * MIB)
    assert device.allocator.expandable_segments[block.home] == 2


def test_pages_that_the_device_does_not_have_are_not_mapped() -> None:
    device = Device("expandable_segments:True", capacity=50 * MIB)
    device.take(30 * MIB)
    assert device.malloc(30 * MIB) is None
    assert device.allocator.reserved == 40 * MIB


def test_max_split_size_does_not_keep_expandable_blocks_whole() -> None:
    device = Device("expandable_segments:True,max_split_size_mb:100")
    device.free(device.take(150 * MIB))
    assert device.take(145 * MIB).size == 145 * MIB


def test_max_split_size_bounds_the_search_in_expandable_segments_too() -> None:
    device = Device("expandable_segments:True,max_split_size_mb:100")
    block = device.take(200 * MIB)
    device.free(block)
    # The block of 200 MiB is refused, and found again as the run of free addresses that lies lowest, before the rest
    # of the segment: nothing is mapped.
    assert device.take(50 * MIB).address == 0
    assert device.events == [(Action.SEGMENT_MAP, 200)]


# base_addr_aligned_kb of torch_npu


def test_large_blocks_of_expandable_segments_on_ascend_begin_at_16_kib() -> None:
    device = Device("expandable_segments:True")
    device.config = replace(device.config, base_alignment=16 * KIB)
    device.allocator = DeviceCachingAllocator(device.config, Limit(), Ascending())
    first, large, small = device.take(2 * MIB + 512), device.take(2 * MIB), device.take(2 * MIB - 512)
    assert large.address == first.address + 2 * MIB + 16 * KIB
    assert large.prev is not None
    assert (large.prev.is_free, large.prev.size) == (True, 16 * KIB - 512)
    assert small.address == large.end
    device.free(large)
    assert device.take(2 * MIB).address == large.address


def test_where_the_aligned_block_would_not_fit_it_begins_where_the_hole_does() -> None:
    device = Device("expandable_segments:True")
    device.config = replace(device.config, base_alignment=16 * KIB)
    device.allocator = DeviceCachingAllocator(device.config, Limit(), Ascending())
    first = device.take(3 * MIB)
    device.free(first)
    head, tail = device.take(MIB + 512), device.take(20 * MIB - MIB - 512)
    assert tail.address == head.end


def test_ordinary_segments_on_ascend_are_not_aligned() -> None:
    device = Device()
    device.config = replace(device.config, base_alignment=16 * KIB)
    device.allocator = DeviceCachingAllocator(device.config, Limit(), Ascending())
    first = device.take(2 * MIB + 512)
    assert device.take(2 * MIB).address == first.end
