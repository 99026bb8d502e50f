"""Keep the message of an exception, not the exception: its traceback holds the frames of calls that have ended."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "forget_exception"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where stored exceptions keep memory."""
    for one in circumstances.piled.debris:
        if one.kind not in ("cycle", "optimizer"):
            yield Advice(
                SLUG, {"holder": one.holder}, one.retained, enough_by_sum(circumstances, one.retained), at=one.at
            )
