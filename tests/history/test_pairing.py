"""Every column of the table of lifetimes, on traces that lack what traces can lack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from oomscope.history.lifetimes import BEFORE, Pairing, pair
from oomscope.model import Snapshot
from tests.builders import Dict, block, entry, frame, loaded, segment

MIB = 1 << 20
A = 0x7F00_0000_0000
HERE, THERE = [frame("here")], [frame("there")]


class Row(NamedTuple):
    """One lifetime; its address counts from `A`."""

    address: int
    requested: int
    born: int
    freed: int
    gone: int
    stream: int = 0
    stack: str = ""
    block: int = -1


def alloc(address: int, size: int, frames: list[Dict] | None = None, stream: int = 0) -> Dict:
    return entry("alloc", A + address, size, frames=frames, stream=stream)


def asked(address: int, size: int, frames: list[Dict] | None = None) -> Dict:
    return entry("free_requested", A + address, size, frames=frames)


def done(address: int, size: int, frames: list[Dict] | None = None) -> Dict:
    return entry("free_completed", A + address, size, frames=frames)


def paired(segments: list[Dict], trace: list[Dict], **top: object) -> tuple[Snapshot, Pairing]:
    snapshot = loaded(segments, [trace], **top)
    device = snapshot.devices[0]
    layout = device.layout
    return snapshot, pair(device.trace, layout.blocks, layout.segments.stream[layout.blocks.segment])


def rows(segments: list[Dict], trace: list[Dict]) -> list[Row]:
    """What `pair` makes of a device."""
    snapshot, pairing = paired(segments, trace)
    table = pairing.lifetimes
    names = [snapshot.stacks[int(stack)] for stack in table.stack]
    return [
        Row(
            int(table.address[row]) - A,
            int(table.requested[row]),
            int(table.born[row]),
            int(table.freed[row]),
            int(table.gone[row]),
            int(table.stream[row]),
            names[row][0].name if names[row] else "",
            int(table.block[row]),
        )
        for row in range(len(table))
    ]


EMPTY = [segment(A, [block(2 * MIB, "inactive")])]

ENDS = {
    "freed and gone": ([alloc(0, 512), asked(0, 512), done(0, 512)], [Row(0, 512, 0, 1, 2)]),
    "asked for, and the trace ends: it was gone by then, and freed when that was asked": (
        [alloc(0, 512), asked(0, 512), alloc(512, 512), asked(512, 512), done(512, 512)],
        [Row(0, 512, 0, 1, 4), Row(512, 512, 2, 3, 4)],
    ),
    "left live, and no block is there: it ended with the last entry": (
        [alloc(0, 512), alloc(512, 512), done(512, 512)],
        [Row(0, 512, 0, 2, 2), Row(512, 512, 1, 2, 2)],
    ),
    "asked for, never completed, and its address used again: gone when it was asked for": (
        [alloc(0, 512), asked(0, 512), alloc(512, 5), alloc(0, 700), asked(0, 700), done(0, 700)],
        [Row(0, 512, 0, 1, 1), Row(0, 700, 3, 4, 5), Row(512, 5, 2, 5, 5)],
    ),
    "never asked for, and its address used again: gone when that began": (
        [alloc(512, 5), alloc(0, 512), alloc(0, 700), asked(0, 700), done(0, 700), asked(512, 5), done(512, 5)],
        [Row(0, 512, 1, 2, 2), Row(0, 700, 2, 3, 4), Row(512, 5, 0, 5, 6)],
    ),
    "asked for twice: the second is of another lifetime, whose beginning is missing": (
        [alloc(0, 512), asked(0, 512), asked(0, 700), done(0, 700)],
        [Row(0, 512, 0, 1, 1), Row(0, 700, BEFORE, 2, 3)],
    ),
    "asked for after one was gone: that one was there before": (
        [alloc(0, 512), asked(0, 512), done(0, 512), asked(0, 700), done(0, 700)],
        [Row(0, 512, 0, 1, 2), Row(0, 700, BEFORE, 3, 4)],
    ),
    "gone after one was gone: without any request, for requests are recorded": (
        [alloc(0, 512), asked(0, 512), done(0, 512), done(0, 700)],
        [Row(0, 512, 0, 1, 2), Row(0, 700, BEFORE, -1, 3)],
    ),
    "no requests are recorded, as blocks from within show": (
        [done(1024, 9), alloc(0, 512), done(0, 512)],
        [Row(0, 512, 1, 2, 2), Row(1024, 9, BEFORE, 0, 0)],
    ),
    "requests are recorded, and one stands before the recording": (
        [done(1024, 9), alloc(0, 512), asked(0, 512), done(0, 512)],
        [Row(0, 512, 1, 2, 3), Row(1024, 9, BEFORE, -1, 0)],
    ),
    "no requests are recorded, but for that of the first entry": (
        [asked(1024, 9), done(1024, 9), alloc(0, 512), done(0, 512)],
        [Row(0, 512, 2, 3, 3), Row(1024, 9, BEFORE, 0, 1)],
    ),
    "asked for by the first entry, never completed, and its address used again": (
        [asked(0, 512), alloc(512, 5), alloc(0, 700), asked(0, 700), done(0, 700), asked(512, 5), done(512, 5)],
        [Row(0, 512, BEFORE, 0, 0), Row(0, 700, 2, 3, 4), Row(512, 5, 1, 5, 6)],
    ),
    "the last of one address is no neighbour of the first of the next": (
        [alloc(512, 5), asked(512, 5), done(512, 5), alloc(0, 7), entry("snapshot", 0, 0)],
        [Row(0, 7, 3, 4, 4), Row(512, 5, 0, 1, 2)],
    ),
    "other entries end nothing": (
        [alloc(0, 512), entry("segment_free", A, 2 * MIB), entry("oom", A, 512), asked(0, 512), done(0, 512)],
        [Row(0, 512, 0, 3, 4)],
    ),
    "none at all": ([], []),
}


@pytest.mark.parametrize("name", ENDS)
def test_how_a_lifetime_ends(name: str) -> None:
    trace, expected = ENDS[name]
    assert rows(EMPTY, trace) == expected


def test_the_stream_is_that_of_the_allocation() -> None:
    trace = [alloc(0, 512, stream=7), asked(0, 512), done(0, 512)]
    assert rows(EMPTY, trace) == [Row(0, 512, 0, 1, 2, stream=7)]


def test_what_did_not_fit_together_is_counted() -> None:
    trace = [
        alloc(0, 1), alloc(0, 2), alloc(0, 3), asked(0, 3), alloc(0, 4), asked(0, 4), done(0, 4),
        alloc(512, 5), alloc(1024, 6),
    ]  # fmt: skip
    _, pairing = paired([segment(A, [block(512, "inactive"), block(512), block(2 * MIB - 1024, "inactive")])], trace)
    assert pairing.overlapping == 2  # a free that was asked for made room: the fourth overlaps nothing
    assert pairing.lifetimes.address[pairing.missing].tolist() == [A + 1024]
    _, pairing = paired(EMPTY, [asked(0, 1), alloc(0, 2), asked(0, 2), done(0, 2)])
    assert pairing.overlapping == 0


# Final blocks

SEGMENTS = [
    segment(A, [block(512, requested=500, frames=HERE), block(2 * MIB - 512, "inactive")], stream=3),
    segment(
        A + 8 * MIB,
        [
            block(1024, "inactive"),
            block(1024, "active_pending_free", requested=1000, frames=THERE),
            block(2 * MIB - 2048, requested=9),
        ],
        stream=5,
    ),
]
AT = 8 * MIB + 1024


def test_blocks_that_no_entry_mentions_were_there_before() -> None:
    """A pending one had been freed by then as well."""
    assert rows(SEGMENTS, [alloc(4 * MIB, 1), done(4 * MIB, 1)]) == [
        Row(4 * MIB, 1, 0, 1, 1),
        Row(0, 500, BEFORE, 2, 2, 3, "here", 0),
        Row(AT, 1000, BEFORE, -1, 2, 5, "there", 3),
        Row(AT + 1024, 9, BEFORE, 2, 2, 5, "", 4),
    ]


def test_live_blocks_have_their_row_and_a_stack_where_the_entry_has_none() -> None:
    trace = [alloc(AT + 1024, 8), alloc(0, 500), alloc(AT, 1000, HERE, stream=5)]
    assert rows(SEGMENTS, trace) == [
        Row(0, 500, 1, 3, 3, 0, "here", 0),
        # Pending, and no entry says so: that came after the last one.
        Row(AT, 1000, 2, 2, 3, 5, "here", 3),
        Row(AT + 1024, 8, 0, 3, 3, 0, "", 4),
    ]


def test_the_moment_of_a_free_stays_where_an_entry_has_it() -> None:
    trace = [alloc(AT, 1000), asked(AT, 1000), entry("snapshot", 0, 0), entry("snapshot", 0, 0)]
    table = {row.address: row for row in rows(SEGMENTS, trace)}
    assert table[AT] == Row(AT, 1000, 0, 1, 4, 0, "there", 3)


def test_a_block_that_ended_in_the_trace_is_not_the_final_one_at_its_address() -> None:
    trace = [alloc(0, 77), asked(0, 77), done(0, 77)]
    assert rows(SEGMENTS[:1], trace) == [Row(0, 77, 0, 1, 2), Row(0, 500, BEFORE, 3, 3, 3, "here", 0)]


def test_without_entries_all_is_from_before() -> None:
    assert rows(SEGMENTS[:1], []) == [Row(0, 500, BEFORE, 0, 0, 3, "here", 0)]


# Stacks

OLD = [asked(0, 512, THERE), done(0, 512, THERE)]


@pytest.mark.parametrize(
    ("within", "told"),
    [
        ([alloc(512, 5, HERE), asked(512, 5, HERE), done(512, 5, HERE)], "there"),
        ([alloc(512, 5, HERE), asked(512, 5, THERE), done(512, 5, THERE)], ""),
        ([alloc(512, 5, HERE), asked(512, 5, HERE), alloc(1024, 5, HERE), asked(1024, 5, THERE)], ""),
        ([alloc(512, 5, HERE), done(512, 5, HERE)], ""),  # no free that was asked for shows what frees tell
        ([], ""),
    ],
)
def test_what_a_free_tells_of_a_block_from_before(within: list[Dict], told: str) -> None:
    found = rows(EMPTY, [*OLD, *within])
    assert found[0].stack == told
    assert {row.stack for row in found[1:]} <= {"here"}


def test_the_pool_is_that_of_the_entry_and_unknown_for_what_no_entry_mentions() -> None:
    trace = [
        entry("alloc", A, 512, pool_id=(0, 0)),
        entry("alloc", A + 512, 512, pool_id=(0, 4)),
        entry("free_requested", A + 512, 512, pool_id=(0, 4)),
    ]
    snapshot, pairing = paired(SEGMENTS, trace, release="2.12")
    assert pairing.lifetimes.pool[2:].tolist() == [-1, -1]
    pools = [None if pool < 0 else snapshot.pools[pool] for pool in pairing.lifetimes.pool]
    assert [tuple(pool) if pool else None for pool in pools] == [(0, 0), (0, 4), None, None]


# What is asked of the table


def test_which_rows_are_allocated_and_active_at_an_entry() -> None:
    trace = [asked(512, 9), alloc(0, 512), done(512, 9), asked(0, 512), done(0, 512), alloc(1024, 3)]
    segments = [segment(A, [block(1024, "inactive"), block(512), block(2 * MIB - 1536, "inactive")])]
    _, pairing = paired(segments, trace)
    table = pairing.lifetimes
    moments = range(BEFORE, len(trace))
    shown = [table.allocated_at(at).tolist() for at in moments]
    rows_at = {0: range(1, 3), 1: range(BEFORE, 0), 2: range(5, 6)}
    assert shown == [[at in rows_at[row] for row in range(3)] for at in moments]
    rows_at = {0: range(1, 4), 1: range(BEFORE, 2), 2: range(5, 6)}
    assert [table.active_at(at).tolist() for at in moments] == [
        [at in rows_at[row] for row in range(3)] for at in moments
    ]


def test_rows_by_birth_without_those_from_before() -> None:
    trace = [alloc(1024, 1), alloc(0, 2), asked(512, 9), done(512, 9), alloc(2048, 3), alloc(512, 4)]
    _, pairing = paired(EMPTY, trace)
    order = pairing.lifetimes.by_birth()
    assert pairing.lifetimes.born[order].tolist() == [0, 1, 4, 5]
    assert pairing.lifetimes.requested[order].tolist() == [1, 2, 3, 4]
    for segments in (SEGMENTS, EMPTY):
        _, pairing = paired(segments, [])
        assert pairing.lifetimes.by_birth().tolist() == []
    assert np.array_equal(pairing.missing, [])
    assert pairing.overlapping == 0
