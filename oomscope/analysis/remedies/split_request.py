"""Work in pieces: one tensor is larger than all there is, or far larger than those that it is made of."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies import chunk_loss, fused_attention
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.outsized import is_of_a_layer
from oomscope.analysis.verdict.records import Advice

SLUG = "split_request"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """For one request that is too large by itself, or out of proportion to what its work has made."""
    request = circumstances.request
    if request.size <= request.limit.low and not _is_a_broadcast(circumstances):
        return
    place = request.caller or request.site
    enough = enough_by_sum(circumstances, request.size)  # the pieces can be as small as need be
    yield Advice(SLUG, {"place": place, "size": request.size}, request.size, enough, at=place)


def _is_a_broadcast(circumstances: Circumstances) -> bool:
    """Whether it was made in a forward, out of proportion, and no other advice is about it.

    A layer may be meant to make so much of so little: the logits of a large vocabulary.
    """
    if circumstances.needs.times_the_largest is None or not circumstances.names_known:
        return False
    known = any(True for module in (chunk_loss, fused_attention) for _ in module.propose(circumstances))
    return not known and not is_of_a_layer(circumstances.study, circumstances.request)
