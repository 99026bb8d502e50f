"""Single rules of lifetimes, sizes and spans, each on a snapshot made to show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oomscope.allocator import AllocatorConfig
from oomscope.history import BEFORE, DeviceHistory, device_history, recorded_config
from oomscope.model import Action
from tests import builders
from tests.builders import block, entry, frame, loaded, segment

MIB = 1 << 20
A = 0x7F00_0000_0000


def history(segments: list[builders.Dict], trace: list[builders.Dict], **top: object) -> DeviceHistory:
    snapshot = loaded(segments, [trace], **top)
    return device_history(snapshot.devices[0], recorded_config(snapshot))


def allocated(one: DeviceHistory) -> list[int]:
    return one.curves.allocated.tolist()


def test_a_free_that_completes_first_was_requested_before_the_recording() -> None:
    one = history(
        [segment(A, [block(2 * MIB, "inactive")], kind="small")],
        [
            entry("free_completed", A, 512),
            entry("alloc", A, 1024),
            entry("free_requested", A, 1024),
            entry("free_completed", A, 1024),
        ],
    )
    assert allocated(one) == [0, 0, 1024, 0, 0]
    assert one.curves.active.tolist() == [512, 0, 1024, 1024, 0]


def test_where_requests_of_frees_are_not_recorded_their_completion_stands_for_both() -> None:
    one = history(
        [segment(A, [block(2 * MIB, "inactive")], kind="small")],
        [entry("free_completed", A, 512), entry("alloc", A, 1024), entry("free_completed", A, 1024)],
    )
    assert allocated(one) == [512, 0, 1024, 0]
    assert one.curves.active.tolist() == [512, 0, 1024, 0]


def test_a_pending_block_is_active_but_not_allocated() -> None:
    one = history(
        [segment(A, [block(512, "active_pending_free"), block(2 * MIB - 512, "inactive")], kind="small")],
        [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 512), entry("free_requested", A, 512)],
    )
    assert allocated(one) == [0, 0, 512, 0]
    assert one.curves.active.tolist() == [0, 0, 512, 512]


def test_a_free_between_the_trace_and_the_segments_counts_for_the_last_entry() -> None:
    """The segments are read a moment later: a block may be pending there whose free is in no entry."""
    blocks = [block(512, "active_pending_free"), block(1024), block(2 * MIB - 1536, "inactive")]
    one = history(
        [segment(A, blocks, kind="small")],
        [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 512), entry("alloc", A + 512, 1024)],
    )
    assert allocated(one) == [0, 0, 512, 1024]
    assert one.curves.active.tolist() == [0, 0, 512, 1536]


def test_a_large_block_keeps_what_was_not_split_off() -> None:
    one = history(
        [segment(A, [block(20 * MIB, "inactive")])],
        [
            entry("segment_alloc", A, 20 * MIB),
            entry("alloc", A, 19 * MIB + 5),
            entry("free_requested", A, 19 * MIB + 5),
            entry("free_completed", A, 19 * MIB + 5),
            entry("alloc", A, 19 * MIB - 512),
            entry("free_requested", A, 19 * MIB - 512),
            entry("free_completed", A, 19 * MIB - 512),
        ],
    )
    assert one.size.tolist() == [20 * MIB, 19 * MIB - 512]
    assert one.slack.tolist() == [0, 0]


@pytest.mark.parametrize(("asked", "size"), [(64 * MIB, 100 * MIB), (64 * MIB - 512, 64 * MIB - 512)])
def test_blocks_from_max_split_size_on_take_their_whole_free_block(asked: int, size: int) -> None:
    trace = [
        entry("segment_alloc", A, 100 * MIB),
        *(entry(action, A, asked) for action in ("alloc", "free_requested", "free_completed")),
    ]
    settings = builders.settings(max_split_size=64 * MIB)
    one = history([segment(A, [block(100 * MIB, "inactive")])], trace, allocator_settings=settings)
    assert one.size.tolist() == [size]
    before = history([segment(A, [block(100 * MIB, "inactive")])], trace[2:], allocator_settings=settings)
    assert before.size.tolist() == [size]


def test_under_expandable_segments_every_rest_is_split_off_in_ordinary_segments_too() -> None:
    one = history(
        [segment(A, [block(20 * MIB, "inactive")])],
        [
            entry("segment_alloc", A, 20 * MIB),
            entry("alloc", A, 19 * MIB + 5),
            entry("free_requested", A, 19 * MIB + 5),
            entry("free_completed", A, 19 * MIB + 5),
        ],
        allocator_settings=builders.settings(expandable_segments=True),
    )
    assert one.size.tolist() == [19 * MIB + 512]


@pytest.mark.parametrize(
    ("rest", "slack"),
    [(MIB, 0), (MIB + 512, 0), (MIB + 1024, 512), (2 * MIB + 512, MIB), (9 * MIB, MIB)],
)
def test_a_block_from_before_the_recording_is_known_up_to_what_could_be_its_own(rest: int, slack: int) -> None:
    size = 20 * MIB - rest
    one = history(
        [segment(A, [block(20 * MIB, "inactive")])],
        [entry("free_requested", A, size), entry("free_completed", A, size)],
    )
    assert one.slack.tolist() == [slack]
    assert one.size.tolist() == [20 * MIB if rest <= MIB else size]


@pytest.mark.parametrize(("more", "known"), [(4096, True), (MIB, True), (MIB + 512, False)])
def test_the_next_block_shows_where_the_one_before_it_ended(more: int, known: bool) -> None:
    """Unless it lies further behind than a block can reach: there a free one was between the two."""
    one = history(
        [segment(A, [block(20 * MIB, "inactive")])],
        [
            entry("alloc", A + 5 * MIB + more, 2 * MIB),
            entry("free_requested", A, 5 * MIB),
            entry("free_completed", A, 5 * MIB),
            entry("free_requested", A + 5 * MIB + more, 2 * MIB),
            entry("free_completed", A + 5 * MIB + more, 2 * MIB),
        ],
    )
    assert one.size.tolist() == [5 * MIB + (more if known else 0), 2 * MIB]
    assert one.slack.any() == (not known)


def test_frees_tell_the_stack_of_blocks_from_before_only_where_they_repeat_their_allocation() -> None:
    here, there = [frame("here")], [frame("there")]

    def stacks(free_frames: list[builders.Dict]) -> list[bool]:
        one = history(
            [segment(A, [block(2 * MIB, "inactive")], kind="small")],
            [
                entry("alloc", A + 512, 512, frames=here),
                entry("free_requested", A + 512, 512, frames=free_frames),
                entry("free_completed", A + 512, 512, frames=free_frames),
                entry("free_requested", A, 512, frames=there),
                entry("free_completed", A, 512, frames=there),
            ],
        )
        return (one.lifetimes.stack >= 0).tolist()

    assert stacks(here) == [True, True]
    assert stacks(there) == [False, True]


def test_what_the_trace_leaves_live_and_the_segments_do_not_hold_is_counted_as_missing() -> None:
    one = history(
        [segment(A, [block(2 * MIB, "inactive")], kind="small")],
        [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 700), entry("snapshot", 0, 0)],
    )
    assert one.missing_bytes == 1024
    assert allocated(one)[-1] == 0


def test_an_allocation_at_an_address_in_use_ends_the_one_before_it() -> None:
    one = history(
        [segment(A, [block(512), block(2 * MIB - 512, "inactive")], kind="small")],
        [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 100), entry("alloc", A, 200)],
    )
    assert one.overlapping == 1
    assert allocated(one) == [0, 0, 512, 512]


def test_pieces_of_an_expandable_segment_come_and_go_on_their_own() -> None:
    one = history(
        [segment(A, [block(20 * MIB, "inactive")], expandable=True)],
        [
            entry("segment_map", A, 60 * MIB),
            entry("segment_unmap", A + 20 * MIB, 40 * MIB),
            entry("segment_map", A + 20 * MIB, 20 * MIB),
            entry("segment_unmap", A + 20 * MIB, 20 * MIB),
        ],
        allocator_settings=builders.settings(expandable_segments=True),
    )
    assert one.curves.reserved.tolist() == [size * MIB for size in (0, 60, 20, 40, 20)]
    assert [len(one.layout_at(at).segments) for at in (BEFORE, 0, 1, 2, 3)] == [0, 1, 1, 1, 1]
    assert one.layout_at(2).segments.total_size.tolist() == [40 * MIB]


def test_snapshot_and_unknown_entries_change_nothing() -> None:
    one = history(
        [segment(A, [block(512), block(2 * MIB - 512, "inactive")], kind="small")],
        [
            entry("segment_alloc", A, 2 * MIB),
            entry("alloc", A, 1),
            entry("snapshot", 0, 0),
            entry("something_new", 5, 5),
        ],
    )
    assert one.trace.action.tolist()[-2:] == [Action.SNAPSHOT, Action.OTHER]
    assert one.layout_at(1) is one.layout


def test_the_first_block_of_an_empty_segment_tells_nothing_of_those_in_others() -> None:
    other = A + 64 * MIB
    one = history(
        [segment(A, [block(20 * MIB, "inactive")]), segment(other, [block(20 * MIB, "inactive")])],
        [
            entry("alloc", other, 2 * MIB),
            entry("free_requested", A, 5 * MIB),
            entry("free_completed", A, 5 * MIB),
        ],
    )
    assert one.size.tolist() == [5 * MIB, 2 * MIB]
    assert one.slack.tolist() == [MIB, 0]


@pytest.mark.parametrize(
    ("last", "state", "bridge"),
    [
        ("alloc", "active_allocated", 0),
        ("alloc", "active_pending_free", 0),
        ("free_requested", "active_pending_free", 0),
        ("free_requested", "active_allocated", 2),
        ("free_completed", "active_allocated", 1),
    ],
)
def test_a_block_whose_free_was_asked_for_before_the_cut_is_not_the_one_that_is_allocated_at_the_end(
    last: str, state: str, bridge: int
) -> None:
    actions = ["segment_alloc", "alloc", "free_requested", "free_completed"]
    trace = [entry(action, A, 512 if "seg" not in action else 2 * MIB) for action in actions[: actions.index(last) + 1]]
    segments = [segment(A, [block(512, state), block(2 * MIB - 512, "inactive")], kind="small")]
    (device,) = loaded(segments, [trace]).devices
    assert device_history(replace(device, cut=True), AllocatorConfig()).bridge == bridge


@pytest.mark.parametrize(("given_back", "bridge"), [(True, ["segment_alloc", "alloc"]), (False, [])])
def test_a_segment_that_was_given_back_before_the_cut_and_is_there_at_the_end_was_obtained_again(
    given_back: bool, bridge: list[str]
) -> None:
    before = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 512)]
    after = [entry("free_requested", A, 512), entry("free_completed", A, 512), entry("segment_free", A, 2 * MIB)]
    segments = [segment(A, [block(512), block(2 * MIB - 512, "inactive")], kind="small")]
    (device,) = loaded(segments, [before + (after if given_back else [])]).devices
    one = device_history(replace(device, cut=True), AllocatorConfig())
    assert [Action(action).name.lower() for action in one.trace.action[one.recorded :].tolist()] == bridge
