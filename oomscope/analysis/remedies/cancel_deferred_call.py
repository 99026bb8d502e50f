"""Cancel a call that waits for its time, or hand it less."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "cancel_deferred_call"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where such a call alone keeps memory, or more of them with every pass."""
    piled = circumstances.piled
    for one in (*piled.debris, *((piled.holder,) if piled.holder else ())):
        if one.kind == "deferred":
            call = one.holder[: one.holder.rfind(")") + 1] or one.holder
            values = {"holder": call, "bytes": one.retained}
            yield Advice(SLUG, values, one.retained, enough_by_sum(circumstances, one.retained), at=one.at)
