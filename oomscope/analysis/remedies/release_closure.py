"""Take back a function that a call has left behind: it keeps the variables of that call."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_closure"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where such a function keeps what its call had made."""
    for one in circumstances.piled.debris:
        if one.is_ended_closure:
            enough = enough_by_sum(circumstances, one.retained)
            yield Advice(SLUG, {"holder": one.holder}, one.retained, enough, at=one.at)
