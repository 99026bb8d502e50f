"""Keep the message of an exception, not the exception: its traceback holds the frames of calls that have ended."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "forget_exception"
SHOWN_LAST = "sys: last_"
"""Where Python keeps the error that it showed last, for a debugger; a console goes on after it."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where stored exceptions keep memory."""
    piled = circumstances.piled
    for one in (*piled.debris, *((piled.holder,) if piled.holder else ())):
        if one.kind == "exception":
            slug = f"{SLUG}.shown" if one.holder.startswith(SHOWN_LAST) else SLUG
            yield Advice(
                slug, {"holder": one.holder}, one.retained, enough_by_sum(circumstances, one.retained), at=one.at
            )
