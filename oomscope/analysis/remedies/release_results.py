"""Let go of what earlier work has left, if nothing reads it any more."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.passes.left_by_calls import LeftByCalls
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_results"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the trace shows that earlier work has left much."""
    left = circumstances.piled.left
    if isinstance(left, LeftByCalls):
        slug = f"{SLUG}.collection" if left.holder else SLUG if left.by == "calls" else f"{SLUG}.{left.by}"
        values = {"place": left.place, "bytes": left.bytes, "holder": left.holder}
        yield Advice(slug, values, left.bytes, enough_by_sum(circumstances, left.bytes), at=left.place)
