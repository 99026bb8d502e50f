"""Allocate on one stream, or wait for the other before a large request."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.causes.other_stream import keeper
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "one_stream"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where free bytes belong to other streams, or waited for one."""
    case = circumstances.shortage
    saves = case.free.other_streams + case.free.pending + case.opened
    if not saves:
        return
    enough = True if case.opened else enough_by_sum(circumstances, saves)
    pin = keeper(circumstances)
    if pin is not None and not case.free.pending:
        place = pin.site or pin.caller
        yield Advice(f"{SLUG}.kept", {"place": place, "bytes": pin.live_bytes}, pin.alone_bytes, enough, at=place)
    else:
        yield Advice(SLUG if case.free.pending or case.opened else f"{SLUG}.free", {}, saves, enough)
