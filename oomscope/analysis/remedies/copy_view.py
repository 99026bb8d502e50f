"""Copy a small view, so that the large tensor behind it can go."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "copy_view"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where views show little of what they keep alive."""
    piled = circumstances.piled
    for one in (*piled.debris, *((piled.holder,) if piled.holder else ())):
        if one.shows is not None and one.unread is None:
            saves = one.retained - one.shows
            values = {"holder": one.holder, "bytes": saves}
            yield Advice(SLUG, values, saves, enough_by_sum(circumstances, saves), at=one.at)
