"""Fewer different sizes: lengths padded or sorted into buckets."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "bucket_lengths"

MANY_SIZES = 4
"""A line that asks for more different sizes than that leaves holes of every size."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the line that failed has asked for many sizes."""
    if circumstances.varied_sizes > MANY_SIZES:
        request = circumstances.request
        place = request.site or request.caller
        yield Advice(SLUG, {"place": place, "sizes": circumstances.varied_sizes}, None, None, at=place)
