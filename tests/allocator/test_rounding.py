"""Sizes of blocks and segments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.allocator import AllocatorConfig, allocation_size, round_size, round_sizes, should_split

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
DEFAULT = AllocatorConfig()
DIVIDED = [AllocatorConfig.parse(f"roundup_power2_divisions:{count}") for count in (1, 2, 4, 8, 16)]
BY_INTERVAL = AllocatorConfig.parse("roundup_power2_divisions:[1:2,4:0,64:8,>:4]")


@pytest.mark.parametrize(
    ("size", "rounded"),
    [(0, 512), (1, 512), (512, 512), (513, 1024), (MIB - 1, MIB), (MIB + 1, MIB + 512), (3 * GIB + 5, 3 * GIB + 512)],
)
def test_requests_are_rounded_to_512_bytes(size: int, rounded: int) -> None:
    assert round_size(size, DEFAULT) == rounded


@pytest.mark.parametrize(
    ("size", "rounded"), [(0, 512), (480, 512), (481, 1024), (512, 1024), (MIB - 32, MIB), (MIB, MIB + 512)]
)
def test_ascend_adds_32_bytes_before_it_rounds(size: int, rounded: int) -> None:
    assert round_size(size, AllocatorConfig(padding=32)) == rounded


def test_divisions_part_the_space_between_two_powers_of_2() -> None:
    config = AllocatorConfig.parse("roundup_power2_divisions:4")
    # The example of torch's own comment, in KiB: 1024, 1280, 1536 and 1792.
    sizes = [round_size(size * KIB, config) // KIB for size in (1024, 1025, 1200, 1281, 1700, 1793)]
    assert sizes == [1024, 1280, 1280, 1536, 1792, 2048]


def test_requests_smaller_than_the_divisions_are_rounded_as_usual() -> None:
    config = AllocatorConfig.parse("roundup_power2_divisions:8")
    assert round_size(8 * 512, config) == 8 * 512
    assert round_size(3 * 512 + 1, config) == 4 * 512


@pytest.mark.parametrize(
    ("rounded", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
    ],
)
def test_segments_are_larger_than_the_requests_they_serve(rounded: int, segment: int) -> None:
    assert allocation_size(rounded, DEFAULT) == segment


def test_large_blocks_keep_up_to_one_mebibyte() -> None:
    assert not should_split(3 * MIB, 2 * MIB, small=False, config=DEFAULT)
    assert should_split(3 * MIB + 512, 2 * MIB, small=False, config=DEFAULT)
    assert should_split(1024, 512, small=True, config=DEFAULT)
    assert not should_split(512, 512, small=True, config=DEFAULT)


def test_what_reaches_max_split_size_is_not_split_except_in_expandable_segments() -> None:
    bounded = AllocatorConfig.parse("max_split_size_mb:100")
    assert should_split(200 * MIB, 99 * MIB, small=False, config=bounded)
    assert not should_split(200 * MIB, 100 * MIB, small=False, config=bounded)
    assert should_split(
        200 * MIB, 100 * MIB, small=False, config=AllocatorConfig.parse("expandable_segments:True", bounded)
    )


sizes = st.integers(0, 300 * GIB) | st.integers(0, 4096) | st.integers(0, 38).map(lambda power: 1 << power)


@given(st.lists(sizes), st.sampled_from([DEFAULT, *DIVIDED, BY_INTERVAL]))
def test_the_columns_are_rounded_like_single_sizes(values: list[int], config: AllocatorConfig) -> None:
    rounded = round_sizes(np.array(values, np.int64), config)
    assert rounded.tolist() == [round_size(value, config) for value in values]


@given(sizes, st.sampled_from([DEFAULT, *DIVIDED, BY_INTERVAL]))
def test_rounding_gives_multiples_of_512_and_never_less(size: int, config: AllocatorConfig) -> None:
    rounded = round_size(size, config)
    assert rounded % 512 == 0
    assert rounded >= size
    assert round_size(rounded, config) == rounded
    assert rounded <= max(2 * size, 512 * (size // 512 + 1))


@given(sizes)
def test_a_segment_holds_its_request(size: int) -> None:
    rounded = round_size(size, DEFAULT)
    assert allocation_size(rounded, DEFAULT) >= rounded
    assert allocation_size(rounded, DEFAULT) % (2 * MIB) == 0
