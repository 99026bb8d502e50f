"""Sizes that no device has are refused, so that no sum leaves 64 bits; a request that failed may be of any size."""

from __future__ import annotations

from typing import Any

import pytest

from oomscope.analysis import analyze
from oomscope.errors import SnapshotError
from oomscope.reading import load
from oomscope.reading.bounds import LARGEST_REQUEST, LARGEST_SIZE, LARGEST_SUM
from tests.builders import block, entry, loaded, pickled, segment, settings, snapshot
from tests.said import said

A = 0x7F00_0000_0000
ROUNDED = settings(roundup_power2_divisions={str(1 << exponent): 4 for exponent in range(17)})


def one_segment(**changes: Any) -> dict[str, Any]:
    made = segment(A, [block(512)])
    made.update(changes)
    return made


def one_block(**changes: Any) -> dict[str, Any]:
    made = segment(A, [block(512)])
    made["blocks"][0].update(changes)
    return made


@pytest.mark.parametrize("key", ["total_size", "size"])
def test_the_largest_size_is_read_and_one_byte_more_is_refused(key: str) -> None:
    make = one_segment if key == "total_size" else one_block
    assert loaded([make(**{key: LARGEST_SIZE})]).devices
    with pytest.raises(SnapshotError, match=f"'{key}' of 1,125,899,906,842,625 bytes, more than any device has"):
        loaded([make(**{key: LARGEST_SIZE + 1})])


@pytest.mark.parametrize("size", [(1 << 63) - 1, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("action", ["alloc", "segment_alloc", "segment_map"])
def test_an_allocation_beyond_any_device_is_damage(action: str, size: int) -> None:
    with pytest.raises(SnapshotError, match=r"entry 1 of device 0's trace has a 'size' of -?[\d,]+ bytes"):
        loaded([segment(A, [block(512)])], [[entry("alloc", A, 512), entry(action, A, size)]])


def test_sums_that_leave_64_bits_are_refused() -> None:
    most = LARGEST_SUM // LARGEST_SIZE
    taken = entry("alloc", A, LARGEST_SIZE)
    assert loaded([], [[taken] * most]).entries == most
    with pytest.raises(SnapshotError, match="sum to more than 62 bits hold"):
        loaded([], [[taken] * (most + 1)])


@pytest.mark.parametrize("made", [one_segment(address=(1 << 63) - 1), one_block(address=(1 << 63) - 1)])
def test_what_ends_beyond_the_last_address_is_damage(made: dict[str, Any]) -> None:
    with pytest.raises(SnapshotError, match="ends beyond the last address"):
        loaded([made])


@pytest.mark.parametrize("size", [LARGEST_REQUEST, LARGEST_REQUEST + 1, (1 << 63) - 1])
def test_a_request_of_any_size_may_fail(size: int) -> None:
    failed = loaded(
        [segment(A, [block(512)])], [[entry("alloc", A, 512), entry("oom", 0, size)]], allocator_settings=ROUNDED
    )
    oom = analyze(failed).devices[0].oom
    assert oom is not None
    assert oom.requested == LARGEST_REQUEST
    assert oom.alloc_size >= LARGEST_REQUEST
    assert ("1 failed request of more than" in said(failed.notes)) == (size > LARGEST_REQUEST)


def test_a_list_of_blocks_that_serves_as_a_stack_too_loses_none_of_them() -> None:
    """Stacks are emptied when they are read, so as not to fill memory."""
    shared = segment(A, [block(512), block(512)])
    shared["frames"] = shared["blocks"]
    assert load(pickled(snapshot([shared], [[]]))).device(0).layout.blocks.size.tolist() == [512, 512]
