"""`scaled_dot_product_attention` instead of scores that are written out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.model.storing import name_at_end

SLUG = "fused_attention"
DRIVER = "attention_scores"

_ADDED = re.compile(r"bias|mask|alibi", re.IGNORECASE)
"""Names of what is added to the scores: a fused kernel is given it as it is."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where attention scores hold much: a fused kernel never writes them, but reads what is added to them."""
    scores = next((one.bytes for one in circumstances.drivers if one.slug == DRIVER), 0)
    added = sum(
        one.retained
        for one in circumstances.suspects
        if one.kind in ("tensor", "graph") and _ADDED.search(name_at_end(one.holder).rpartition(".")[2])
    )
    yield from shrink(circumstances, SLUG, DRIVER, max(scores - added, 0) / max(scores, 1))
