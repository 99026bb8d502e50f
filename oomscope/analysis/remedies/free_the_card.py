"""End or move the other users of the card."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "free_the_card"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where others hold what was missing."""
    outside = circumstances.outside
    if outside:
        others = tuple(name for name, _ in circumstances.others[:3])
        yield Advice(SLUG, {"others": others}, outside, enough_by_sum(circumstances, outside))
