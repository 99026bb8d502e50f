"""`scaled_dot_product_attention` instead of scores that are written out."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "fused_attention"

ALL = 1.0
"""A fused kernel never writes the scores."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where attention scores hold much."""
    yield from shrink(circumstances, SLUG, "attention_scores", ALL)
