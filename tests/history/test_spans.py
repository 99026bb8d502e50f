"""Which segment an address lies in at an entry, against a look at every one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oomscope.history.spans import Spans, locate

A = 0x7F00_0000_0000
Row = tuple[int, int, int, int]


@st.composite
def spans_in_order(draw: st.DrawFn) -> list[Row]:
    """Address, size, begin and end of spans that never overlap: in each of some places, one after another.

    One ends where the next begins if the entry that gave it back was lost.
    """
    rows: list[Row] = []
    for place in range(draw(st.integers(0, 3))):
        size = draw(st.sampled_from([0, 512, 1024]))
        moments = sorted(draw(st.sets(st.integers(-1, 8), max_size=6)))
        lost = draw(st.booleans())
        pairs = pairwise(moments) if lost else zip(moments[::2], moments[1::2], strict=False)
        rows += [(A + 1024 * place, size, *pair) for pair in pairs]
    return rows


def table(rows: list[Row]) -> Spans:
    address, size, begin, end = (np.array([row[column] for row in rows], np.int64) for column in range(4))
    none, number = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int32)
    return Spans(address, size, begin, end, np.zeros(len(rows), np.int64), none, none, number, number)


@given(spans_in_order(), st.lists(st.tuples(st.integers(-1, 8), st.integers(-1, 9)), min_size=1, max_size=20))
def test_an_address_is_found_in_the_span_that_holds_it_then(rows: list[Row], asked: list[tuple[int, int]]):
    address = np.array([A + 400 * step for step, _ in asked], np.int64)
    entry = np.array([moment for _, moment in asked], np.int64)
    wanted = [
        next((n for n, (at, size, begin, end) in enumerate(rows) if at <= a < at + size and begin <= t < end), -1)
        for a, t in zip(address.tolist(), entry.tolist(), strict=True)
    ]
    assert locate(table(rows), address, entry).tolist() == wanted
