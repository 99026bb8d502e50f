"""What happened in pinned host memory, whose blocks are as large as they are written."""

from __future__ import annotations

from oomscope.history import pinned_history
from tests.builders import block, loaded, segment

A = 0x7F0000000000


def test_a_pinned_block_that_no_entry_mentions_is_as_large_as_it_is_written() -> None:
    held = segment(A, [block(1024, requested=700)], device=-1, kind="small")
    host = loaded([], [[]], release="2.14", host_segments=[held], host_traces=[]).host
    assert host is not None
    history = pinned_history(host)
    assert history.size.tolist() == [1024]
    assert history.curves.allocated.tolist() == [1024]
