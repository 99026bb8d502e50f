"""Which request is which."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.analysis.plan import alignment
from oomscope.analysis.plan.alignment import Stretch, align


def stretch(*rows: tuple[int, int, bool]) -> Stretch:
    """Requests as key, size, at once."""
    keys, sizes, at_once = zip(*rows, strict=True) if rows else ((), (), ())
    return Stretch(np.array(keys, np.int64), np.array(sizes, np.int64), np.array(at_once, np.bool_))


def test_the_same_stacks_in_the_same_order_are_paired_whatever_their_sizes():
    one, other = stretch((1, 10, False), (2, 20, False)), stretch((1, 99, False), (2, 1, False))
    assert align(one, other, [1.5]).tolist() == [0, 1]


def test_workspaces_that_come_and_go_leave_the_others_aligned():
    one = stretch((1, 10, False), (1, 7, True), (2, 20, False), (-1, 30, False))
    other = stretch((1, 15, False), (2, 30, False), (2, 99, True), (-1, 45, False))
    assert align(one, other, [1.5]).tolist() == [0, -1, 1, 3]


def test_sizes_tell_which_of_equal_stacks_is_missing():
    """In a backward pass no request has frames."""
    one = stretch(*((-1, size, False) for size in (100, 8000, 64, 200, 4096)))
    other = stretch(*((-1, size, False) for size in (150, 64, 300, 4096)))
    assert align(one, other, [1.5]).tolist() == [0, -1, 1, 2, 3]


def test_what_only_one_step_makes_leaves_the_others_aligned_whatever_their_sizes():
    """The first step makes the state of an optimizer (9); what data decides has another size in each step."""
    one = stretch((1, 10, False), (2, 20, False), (2, 30, False), (9, 5, False), (9, 5, False), (3, 7, False))
    other = stretch((1, 11, False), (2, 22, False), (2, 3, False), (3, 8, False))
    assert align(one, other, [1.5]).tolist() == [0, 1, 2, -1, -1, 3]


def test_long_stretches_are_cut_at_what_is_unique(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(alignment, "MOST_CELLS", 10)
    rows = [(key, 10, False) for key in (*range(30), *range(30, 60))]
    missing = [row for row in rows if row[0] not in (3, 40)]
    partner = align(stretch(*rows), stretch(*missing), [2.0])
    assert [key for (key, _, _), found in zip(rows, partner.tolist(), strict=True) if found < 0] == [3, 40]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.booleans()), max_size=30), st.data())
def test_pairs_have_one_stack_and_none_is_used_twice(rows: list[tuple[int, int, bool]], data: st.DataObject):
    other = [row for row in rows if data.draw(st.booleans())]
    partner = align(stretch(*rows), stretch(*other), [2.0]) if rows else np.zeros(0, np.int64)
    used = partner[partner >= 0]
    assert len(set(used.tolist())) == len(used)
    assert all(rows[row][0] == other[found][0] for row, found in enumerate(partner.tolist()) if found >= 0)
