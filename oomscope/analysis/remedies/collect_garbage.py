"""Break the reference cycle, or let the garbage collector find it."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "collect_garbage"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where unreachable cycles keep memory."""
    for one in circumstances.piled.debris:
        if one.kind == "cycle":
            yield Advice(
                SLUG, {"holder": one.holder}, one.retained, enough_by_sum(circumstances, one.retained), at=one.at
            )
