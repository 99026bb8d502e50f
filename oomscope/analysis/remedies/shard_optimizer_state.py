"""Less optimizer state on this card: sharded over the ranks, in 8 bits, or of an optimizer that keeps less."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "shard_optimizer_state"

IN_EIGHT_BITS = 0.75
"""States of 8 bits instead of 32."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where optimizer state holds much; of a history, half of it."""
    if history := circumstances.needs.history_of_steps:
        yield Advice(f"{SLUG}.history", {}, history // 2, enough_by_sum(circumstances, history // 2))
        return
    whole = circumstances.needs.state_to_come[1]  # while it is being made, what is there is a part of it
    yield from shrink(circumstances, SLUG, "optimizer_state", IN_EIGHT_BITS, least=whole)
