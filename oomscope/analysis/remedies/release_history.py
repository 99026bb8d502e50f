"""Let a notebook forget what its cells have shown."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_history"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where its history alone keeps memory."""
    for one in circumstances.piled.debris:
        if one.kind == "history":
            values = {"holder": one.holder, "bytes": one.retained}
            yield Advice(SLUG, values, one.retained, enough_by_sum(circumstances, one.retained), at=one.at)
