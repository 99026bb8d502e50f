"""The model: columns, stacks, actions."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.model import NO_STACK, Action, Blocks, Frame, Layout, Segments, StackTable, Trace, address_text
from tests.builders import block, entry, loaded, segment

A = 0x7F00_0000_0000


def test_a_stack_table_gives_back_its_stacks_innermost_first() -> None:
    frames = [Frame("a.py", 1, "a"), Frame("b.py", 2, "b"), Frame("c.py", 3, "c")]
    table = StackTable.from_stacks(frames, [[0, 1], [], [2, 0]])
    assert len(table) == 3
    assert list(table) == [(frames[0], frames[1]), (), (frames[2], frames[0])]
    assert table[NO_STACK] == ()
    for wrong in (3, -2):
        with pytest.raises(IndexError, match="no stack"):
            table[wrong]
    assert list(StackTable.from_stacks([], [])) == []
    assert table.holding(np.array([True, False, False])).tolist() == [True, False, True, False]
    assert table.holding(np.zeros(3, np.bool_)).tolist() == [False] * 4
    assert StackTable.from_stacks([], []).holding(np.zeros(0, np.bool_)).tolist() == [False]


def test_actions_have_torchs_names_and_unknown_ones_are_kept_as_such() -> None:
    for action in Action:
        if action is not Action.OTHER:
            assert Action.from_name(action.name.lower()) is action
    assert Action.from_name("free") is Action.FREE_COMPLETED
    assert Action.from_name("something_new") is Action.OTHER
    assert Action.from_name("") is Action.OTHER


def test_entries_are_found_by_action_in_order() -> None:
    trace = loaded(
        [segment(A, [block(512, "inactive")])], [[entry("alloc", A, 1), entry("oom", 5, 7), entry("alloc", A, 2)]]
    ).devices[0].trace  # fmt: skip
    assert trace.entries(Action.ALLOC).tolist() == [0, 2]
    assert trace.entries(Action.OOM, Action.ALLOC).tolist() == [0, 1, 2]
    assert trace.entries(Action.SEGMENT_FREE).tolist() == []


def test_what_is_empty_sums_to_nothing() -> None:
    layout = Layout(Segments.empty(), Blocks.empty())
    assert (layout.reserved, layout.allocated, layout.active) == (0, 0, 0)
    assert len(Trace.empty()) == 0


def test_states_that_nobody_knows_are_reserved_and_nothing_else() -> None:
    layout = loaded([segment(A, [block(1024), block(512, "active_pending_free"), block(512, "odd")])]).devices[0].layout
    assert (layout.reserved, layout.allocated, layout.active) == (2048, 1024, 1536)


def test_devices_are_known_by_their_cuda_index() -> None:
    snapshot = loaded([segment(A, [block(512)], device=1)], [[], [entry("alloc", A, 512)]])
    assert snapshot.device(1).layout.allocated == 512
    assert snapshot.entries == 1
    with pytest.raises(KeyError):
        snapshot.device(7)


def test_addresses_of_two_to_the_63_and_above_are_shown_unsigned() -> None:
    assert address_text(A) == "0x7f0000000000"
    assert address_text(int(np.uint64(0xFFFF_8000_0000_0000).astype(np.int64))) == "0xffff800000000000"
