"""Ask again: what waited for a stream came free within the failing call."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "retry_request"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where a hole that serves the request opened too late."""
    opened = circumstances.shortage.opened
    if opened:
        yield Advice(SLUG, {"opened": opened}, None, True, at=circumstances.request.caller)
