"""Work in pieces: one tensor is larger than all there is."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "split_request"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """For one request that is too large by itself."""
    request = circumstances.request
    place = request.caller or request.site
    enough = enough_by_sum(circumstances, request.size)  # the pieces can be as small as need be
    yield Advice(SLUG, {"place": place, "size": request.size}, request.size, enough, at=place)
