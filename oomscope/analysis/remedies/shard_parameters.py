"""Fewer bytes of parameters on this card: a smaller type, or shards."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "shard_parameters"

IN_SIXTEEN_BITS = 0.5
"""16 bits instead of 32, or two ranks."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where parameters hold much."""
    yield from shrink(circumstances, SLUG, "parameters", IN_SIXTEEN_BITS)
