"""Fewer bytes of parameters on this card: a smaller type, or shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "shard_parameters"

HALF = 0.5
"""16 bits instead of 32, or two ranks."""
SIXTEEN_BITS = 2
"""Bytes of an element; what is as small already is only sharded."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where parameters hold much."""
    for advice in shrink(circumstances, SLUG, "parameters", HALF):
        item = circumstances.parameter_item
        yield replace(advice, slug=f"{SLUG}.small") if item is not None and item <= SIXTEEN_BITS else advice
