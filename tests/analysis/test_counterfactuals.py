"""Which causes qualify, each alone, their order, and the margin."""

from __future__ import annotations

from typing import Any

import pytest

from oomscope.analysis.memory.records import FreeForRequest
from oomscope.analysis.records import CAUSES
from oomscope.analysis.verdict.decide import decide
from oomscope.analysis.verdict.records import ProcessLimit
from oomscope.analysis.verdict.shortage import MARGIN, Shortage

GIB = 1 << 30
NOTHING = FreeForRequest(0, 0, 0, 0, 0, 0, 0, 0)


def free(**parts: int) -> FreeForRequest:
    return FreeForRequest(**{name: parts.get(name, 0) for name in FreeForRequest.__slots__})


def case(size: int = 2 * GIB, *, low: int = 10 * GIB, high: int | None = None, **more: Any) -> Shortage:
    """10 GiB are reserved of 10."""
    source = "recorded" if high is None else "bracket"
    return Shortage(
        **{"size": size, "reserved": 10 * GIB, "limit": ProcessLimit(low, high or low, source), "free": NOTHING, **more}
    )


ALONE = {
    "growth": {"grown": 3 * GIB},
    "retained": {"retained": 3 * GIB},
    "private_pools": {"free": free(walled=3 * GIB)},
    "other_stream": {"free": free(other_streams=3 * GIB)},
    "outside_allocator": {"outside": 4 * GIB, "total": 14 * GIB},
    "fragmentation": {"free": free(usable=3 * GIB, stranded=3 * GIB)},
}


@pytest.mark.parametrize("cause", ALONE)
def test_each_cause_alone_is_found_with_what_it_would_have_left(cause: str) -> None:
    tested = decide(case(**ALONE[cause]))
    assert (tested.cause, tested.certain) == (cause, True)
    assert [(one.cause, one.bytes, one.spare) for one in tested.qualifying] == [(cause, 3 * GIB, GIB)]


def test_pending_frees_belong_to_another_stream() -> None:
    assert decide(case(free=free(other_streams=GIB, pending=2 * GIB))).cause == "other_stream"


def test_nothing_free_and_nothing_wrong_is_capacity() -> None:
    tested = decide(case())
    assert (tested.cause, tested.certain, tested.qualifying, tested.together) == ("capacity", True, (), False)


@pytest.mark.parametrize(
    ("retained", "holes", "cause"),
    [
        (2 * GIB - 1, GIB, "retained"),
        (GIB, GIB + int(MARGIN * 10 * GIB) + 1, "retained"),
        (GIB, GIB + int(MARGIN * 10 * GIB), "capacity"),  # what is needed nearly fills the limit
        (0, 2 * GIB - 1, "capacity"),
    ],
)
def test_what_nothing_uses_is_the_cause_where_only_holes_beside_it_are_short_as_well(
    retained: int, holes: int, cause: str
) -> None:
    tested = decide(case(retained=retained, free=free(usable=holes)))
    assert tested.cause == cause
    assert tested.certain == (cause == "capacity")


def test_of_all_that_qualify_the_first_in_order_is_the_cause_and_the_others_are_listed() -> None:
    every = {
        "grown": 3 * GIB,
        "retained": 3 * GIB,
        "free": free(usable=3 * GIB, walled=3 * GIB, other_streams=3 * GIB),
        "outside": 4 * GIB,
        "total": 14 * GIB,
    }
    tested = decide(case(**every))
    assert [one.cause for one in tested.qualifying] == [cause for cause in CAUSES if cause in ALONE]
    assert tested.cause == "growth"
    assert decide(case(size=20 * GIB, **every)).cause == "oversized_request"


@pytest.mark.parametrize("cause", ALONE)
@pytest.mark.parametrize(("spare", "qualifies"), [(int(MARGIN * 10 * GIB), True), (int(MARGIN * 10 * GIB) - 1, False)])
def test_what_would_just_fit_does_not_qualify(cause: str, spare: int, qualifies: bool) -> None:
    tested = decide(case(size=3 * GIB - spare, **ALONE[cause]))
    assert (tested.cause == cause) == qualifies
    assert qualifies or tested.cause == "capacity"


@pytest.mark.parametrize("outside", [None, 0, 1 << 30])
def test_a_normal_context_is_nobodys_fault(outside: int | None) -> None:
    assert decide(case(size=1, low=9 * GIB, outside=outside)).cause == "capacity"


def test_causes_that_qualify_only_at_a_higher_cap_make_capacity_uncertain() -> None:
    tested = decide(case(high=12 * GIB - 1, free=free(usable=GIB)))
    assert (tested.cause, tested.certain) == ("capacity", False)
    assert [one.cause for one in tested.only_higher] == ["fragmentation"]


def test_a_wall_that_just_fits_and_fits_well_at_a_higher_cap_is_the_cause() -> None:
    tested = decide(case(high=12 * GIB - 1, free=free(walled=2 * GIB + 1)))
    assert (tested.cause, tested.certain) == ("private_pools", False)
    assert tested.qualifying[0].spare == 1


def test_a_cause_that_only_a_higher_cap_puts_first_takes_certainty_away() -> None:
    tested = decide(case(high=12 * GIB - 1, free=free(usable=3 * GIB, walled=GIB)))
    assert (tested.cause, tested.certain) == ("fragmentation", False)


def test_several_kinds_together_are_told_apart_from_one_that_is_enough() -> None:
    tested = decide(case(free=free(usable=GIB, walled=GIB, other_streams=GIB)))
    assert (tested.cause, tested.together) == ("capacity", True)


def test_oversized_means_more_than_the_empty_card_and_not_more_than_what_others_left() -> None:
    other = decide(case(size=12 * GIB, outside=70 * GIB, total=80 * GIB))
    assert other.cause == "outside_allocator"
    assert decide(case(size=90 * GIB, outside=70 * GIB, total=80 * GIB)).cause == "oversized_request"
    assert decide(case(size=12 * GIB, cap=10 * GIB, total=80 * GIB)).certain


def test_what_a_card_of_unknown_size_could_serve_is_never_certain() -> None:
    tested = decide(Shortage(20 * GIB, GIB, ProcessLimit(10 * GIB, 10 * GIB, "device"), NOTHING))
    assert (tested.cause, tested.certain) == ("oversized_request", False)


def test_a_request_beyond_all_that_was_proven_under_an_unknown_cap_is_uncertain() -> None:
    for size, cause in ((6 * GIB - 512, "capacity"), (6 * GIB, "oversized_request")):  # of twice the memory it had
        tested = decide(Shortage(size, 3 * GIB, ProcessLimit(3 * GIB, 3 * GIB + size - 1, "bracket"), NOTHING))
        assert (tested.cause, tested.certain) == (cause, False)
    first = decide(Shortage(6 * GIB, 0, ProcessLimit(0, 6 * GIB - 1, "bracket"), NOTHING))
    assert (first.cause, first.certain) == ("oversized_request", False)


def test_neighbours_are_no_cause_where_a_cap_bound() -> None:
    capped = {"cap": 10 * GIB, "total": 80 * GIB, "outside": 41 * GIB}
    assert decide(case(**capped)).cause == "capacity"
    assert decide(case(**capped | {"outside": 71 * GIB})).cause == "outside_allocator"


def test_a_hole_that_is_large_enough_is_not_fragmentation() -> None:
    whole = free(usable=3 * GIB, stranded=3 * GIB, largest=3 * GIB)
    assert decide(case(free=whole)).cause == "capacity"
    assert decide(case(free=whole, opened=3 * GIB)).cause == "other_stream"
