"""Other stream: free bytes belong to another stream, or wait for one."""

from __future__ import annotations

from oomscope.analysis.memory.records import Pin
from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.shortage import Shortage, Tested
from oomscope.model import Note, note

SLUG = "other_stream"
DECIDING = ("request", "opened", "other_streams", "pending", "usable")
REMEDIES = ("retry_request", "one_stream", "allocator_setting", "raise_cap")
MOSTLY = 0.5
"""Of the free bytes of other streams: one line whose blocks keep so many from being given back is named."""
LOOKS_LIKE = ("fragmentation",)


def withheld(case: Shortage) -> int:
    """Free bytes of other streams, blocks that wait for one, and a hole that opened while the request waited."""
    return case.free.other_streams + case.free.pending + case.opened


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where one piece of it would have served the request."""
    case = circumstances.shortage
    piece = max(case.free.other_streams_piece, case.free.pending, case.opened)
    return clauses.doubt_of_wall(circumstances, tested, piece)


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """Where the bytes are, and why the request did not get them."""
    del tested
    case, request = circumstances.shortage, circumstances.request
    if case.opened:
        return (note("causes.other_stream.opened", opened=case.opened, size=request.size),)
    values = {"free": case.free.other_streams, "pending": case.free.pending, "stream": request.stream}
    if case.free.other_streams and case.free.pending:
        return (note("causes.other_stream.both", **values),)
    if case.free.other_streams:
        return (note("causes.other_stream.free", **values), *_kept_by(circumstances))
    return (note("causes.other_stream.pending", **values),)


def keeper(circumstances: Circumstances) -> Pin | None:
    """The line whose blocks keep most of the other streams' free bytes in their segments."""
    free = circumstances.shortage.free.other_streams
    return next((pin for pin in circumstances.pins[:1] if free and pin.alone_bytes >= MOSTLY * free), None)


def _kept_by(circumstances: Circumstances) -> tuple[Note, ...]:
    pin = keeper(circumstances)
    if pin is None:
        return ()
    values = {"blocks": pin.blocks, "place": pin.site or pin.caller, "bytes": pin.live_bytes, "kept": pin.alone_bytes}
    return (note("causes.other_stream.kept_by", **values), *clauses.holder_of(circumstances, pin))


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """The request would have fitted into what is named."""
    del circumstances
    return tested.qualifying[0].spare >= 0
