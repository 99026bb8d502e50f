"""What the failing call itself has made so far."""

from __future__ import annotations

from oomscope.recording import inflight

FAILING = [
    {"filename": "/usr/lib/python3/site-packages/torch/nn/functional.py", "line": 9, "name": "linear"},
    {"filename": "/home/me/train.py", "line": 31, "name": "forward"},
]
OWN = {"filename": inflight.__file__, "line": 1, "name": "recorded"}


def block(address, frames, state="active_allocated"):
    return {"address": address, "requested_size": 100, "state": state, "frames": frames}


def rows_of(*blocks, request={"device": 0}):  # noqa: B006
    snapshot = {"segments": [{"device": 0, "blocks": list(blocks)}]}
    key = {"request": request, "stacks": {"failing": FAILING}, "tensors": [{"device": 0, "address": 4}]}
    return inflight.rows(snapshot, key)


def test_a_block_with_the_failing_stack_is_the_call_in_progress():
    (row,) = rows_of(block(1, [*FAILING, OWN]))
    assert (row["address"], row["bytes"], row["category"]) == (1, 100, "temporary")
    assert row["holders"] == ["the call in progress at forward (train.py:31)"]


def test_other_lines_dead_and_known_blocks_are_not():
    other = [FAILING[0], {**FAILING[1], "line": 30}]
    assert rows_of(block(1, other), block(2, []), block(3, FAILING, "inactive"), block(4, FAILING)) == []
    assert rows_of(block(1, FAILING), request=None) == []
