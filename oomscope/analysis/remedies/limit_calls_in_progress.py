"""Fewer calls at once."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "limit_calls_in_progress"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where many calls of one function were underway at the same time."""
    for one in circumstances.in_progress[:1]:
        yield Advice(SLUG, {"calls": one.calls, "function": one.function}, None, None)
