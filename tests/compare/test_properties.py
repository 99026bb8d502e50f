"""What holds of any two recordings: rows add up, and the way back is the negative."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from oomscope.analysis.compare.diff import compare
from oomscope.analysis.compare.pairing import LiveBlocks, pair
from oomscope.model import Snapshot
from tests.analysis.programs import MIB, Program
from tests.builders import frame
from tests.compare.test_seeded import assert_adds_up, assert_negative

FRAMES = st.tuples(
    st.sampled_from(["f", "g", "forward"]), st.integers(1, 9), st.sampled_from(["/a/m.py", "/a/n.py", "/b/m.py"])
)
STACKS = st.lists(FRAMES, max_size=3)
EVENTS = st.lists(st.tuples(STACKS, st.integers(1, 40), st.booleans()), max_size=25)


def recording(events: list[tuple[list[tuple[str, int, str]], int, bool]]) -> Snapshot:
    program = Program()
    program.alloc(MIB, ())
    for stack, size, kept in events:
        address = program.alloc(size * MIB // 8, tuple(frame(*one) for one in stack))
        if not kept:
            program.free(address)
    return program.snapshot()


@given(EVENTS, EVENTS, st.sampled_from(["peak", "end"]))
@settings(max_examples=60)
def test_any_two_recordings_add_up_and_reverse(before, after, at):
    one, other = recording(before), recording(after)
    there = compare(one, other, at=at)
    assert_adds_up(there)
    assert_negative(there, compare(other, one, at=at))


@given(EVENTS, st.sampled_from(["peak", "end"]))
@settings(max_examples=20)
def test_of_a_recording_and_itself_nothing_changed(events, at):
    snapshot = recording(events)
    assert compare(snapshot, snapshot, at=at).nothing_changed


SIZES = st.lists(st.integers(1, 50).map(lambda count: count * 512), max_size=20)


@given(SIZES, SIZES, st.sampled_from([None, 0.5, 1.5, 2.0, 3.25]))
def test_a_block_is_in_at_most_one_pair(before, after, factor):
    import numpy as np

    ours, theirs = (np.asarray(sizes, np.int64) for sizes in (before, after))
    found = pair(LiveBlocks(ours, ours), LiveBlocks(theirs, theirs), factor)
    assert 0 <= found.explained <= sum(before) + sum(after)
    assert found.by_rounding == 0  # the same requests, and blocks of just their size
    unpaired = sum(before) + sum(after) - found.explained
    assert abs(sum(after) - sum(before) - found.by_ratio - found.by_square) <= unpaired
