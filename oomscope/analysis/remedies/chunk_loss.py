"""A loss over logits in chunks, or fused with the linear layer before it."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "chunk_loss"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where logits hold much; how much it saves depends on the chunks."""
    yield from shrink(circumstances, SLUG, "logits", None)
