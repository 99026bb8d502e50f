"""Where invented segments lie."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oomscope.allocator.addresses import Addresses, Ascending, Descending, Recorded, Shuffled
from oomscope.allocator.driver_addresses import DriverAddresses

MIB = 1 << 20
TOP = 0x7F00_0000_0000

SIZES = st.integers(1, 200).map(lambda size: 2 * size * MIB)
CALLS = st.lists(st.tuples(st.booleans(), SIZES, st.integers(0, 1 << 20)), max_size=80)


def overlaps(live: dict[int, int], address: int, size: int) -> bool:
    return any(begin < address + size and address < begin + length for begin, length in live.items())


def exercise(addresses: Addresses, calls: list[tuple[bool, int, int]], live: dict[int, int]) -> list[int]:
    """Obtain and free segments; no two may ever share an address."""
    given_out = []
    for obtains, size, choice in calls:
        if obtains or not live:
            address = addresses.segment(size)
            assert address >= 0
            assert not overlaps(live, address, size)
            live[address] = size
            given_out.append(address)
        else:
            address = sorted(live)[choice % len(live)]
            addresses.freed(address, live.pop(address))
    return given_out


@given(CALLS)
def test_segments_never_overlap(calls: list[tuple[bool, int, int]]) -> None:
    for addresses in (Ascending(), Descending(), Shuffled(1), DriverAddresses()):
        exercise(addresses, calls, {})


@given(CALLS, CALLS, st.lists(st.tuples(st.integers(0, 300), SIZES), max_size=12))
def test_the_drivers_addresses_keep_clear_of_recorded_segments_wherever_they_lay(
    before: list[tuple[bool, int, int]], after: list[tuple[bool, int, int]], recorded: list[tuple[int, int]]
) -> None:
    addresses = DriverAddresses()
    live: dict[int, int] = {}
    for place, size in recorded:
        address = TOP + place * 14 * MIB
        if not overlaps(live, address, size):
            addresses.adopt(address, size)
            live[address] = size
    exercise(addresses, before, live)
    exercise(addresses, after, live)


def test_the_driver_gives_chunks_of_32_mib_each_below_the_last() -> None:
    addresses = DriverAddresses()
    addresses.adopt(TOP, 20 * MIB)
    assert addresses.segment(60 * MIB) == TOP - 64 * MIB
    assert addresses.segment(32 * MIB) == TOP - 96 * MIB


def test_what_is_left_of_a_chunk_serves_what_fits_the_lowest_first() -> None:
    addresses = DriverAddresses()
    addresses.adopt(TOP, 20 * MIB)
    addresses.segment(60 * MIB)
    assert addresses.segment(2 * MIB) == TOP - 4 * MIB
    assert addresses.segment(4 * MIB) == TOP + 20 * MIB


def test_a_chunk_that_is_free_again_serves_new_ones_from_its_top() -> None:
    addresses = DriverAddresses()
    addresses.adopt(TOP, 32 * MIB)
    middle, low = addresses.segment(128 * MIB), addresses.segment(32 * MIB)
    addresses.freed(middle, 128 * MIB)
    assert addresses.segment(64 * MIB) == TOP - 64 * MIB
    addresses.freed(low, 32 * MIB)
    assert addresses.segment(96 * MIB) == TOP - 160 * MIB, "what is free at the bottom is free space again"


def test_a_recording_is_followed_while_the_same_is_asked_for() -> None:
    recorded = Recorded([TOP, TOP - 64 * MIB], [20 * MIB, 40 * MIB], DriverAddresses())
    assert recorded.segment(20 * MIB) == TOP
    assert recorded.segment(60 * MIB) == TOP - 64 * MIB
    assert recorded.diverged
    assert recorded.segment(40 * MIB) == TOP - 128 * MIB, "not the address that the recording had for it"


def test_a_recorded_address_that_is_still_in_use_is_not_given_out_again() -> None:
    recorded = Recorded([TOP, TOP], [20 * MIB, 20 * MIB], DriverAddresses())
    assert recorded.segment(20 * MIB) == TOP
    assert recorded.segment(20 * MIB) != TOP
    again = Recorded([TOP, TOP], [20 * MIB, 20 * MIB], DriverAddresses())
    again.freed(again.segment(20 * MIB), 20 * MIB)
    assert again.segment(20 * MIB) == TOP
    assert not again.diverged


def test_ranges_of_expandable_segments_come_again() -> None:
    for addresses in (Ascending(), Descending(), DriverAddresses()):
        base = addresses.reserve(1 << 40)
        addresses.release(base, 1 << 40)
        assert addresses.reserve(1 << 40) == base
