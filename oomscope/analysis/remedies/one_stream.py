"""Allocate on one stream, or wait for the other before a large request."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "one_stream"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where free bytes belong to other streams, or waited for one."""
    case = circumstances.shortage
    saves = case.free.other_streams + case.free.pending + case.opened
    if saves:
        yield Advice(SLUG, {}, saves, True if case.opened else enough_by_sum(circumstances, saves))
