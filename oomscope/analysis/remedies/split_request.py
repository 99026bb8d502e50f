"""Work in pieces: one tensor is larger than all there is, or far larger than those that it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from oomscope.analysis.remedies import chunk_loss, fused_attention
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.outsized import is_of_a_layer, times_the_largest
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.verdict.source_lines import text_of

SLUG = "split_request"

WAYS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "one_hot": re.compile(r"\bone_hot\("),
        "pairs": re.compile(r"\b(?:cdist|pairwise_distance|pairwise_cosine_similarity)\("),
        "sorted": re.compile(r"\b(?:arg)?sort\("),
        "copies": re.compile(r"\.(?:repeat|tile|repeat_interleave)\("),
        "broadcast": re.compile(r"\[(?:[^\[\]]*,)?\s*None\s*(?:,[^\[\]]*)?\]|\.unsqueeze\("),
    }
)
"""How a line makes much of little, by its text."""

LEAST_TIMES = 1.5
"""The largest activation before it, for a line that makes much of little: the result is what is unusual."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """For one request that is too large by itself, or out of proportion to what its work has made."""
    request = circumstances.request
    way = _way(circumstances)
    if request.size <= request.limit.low and not _is_out_of_proportion(circumstances, way):
        return
    place = request.caller or request.site
    enough = enough_by_sum(circumstances, request.size)  # the pieces can be as small as need be
    yield Advice(SLUG, {"place": place, "size": request.size, "way": way}, request.size, enough, at=place)


def _way(circumstances: Circumstances) -> str | None:
    """How the line that asked makes much of little, where its text is known and tells."""
    request = circumstances.request
    place = request.caller or request.site
    text = "" if place is None else text_of(circumstances.sources, place)
    return next((way for way, pattern in WAYS.items() if pattern.search(text)), None)


def _is_out_of_proportion(circumstances: Circumstances, way: str | None) -> bool:
    """Whether it was made in a forward, out of proportion, and no other advice is about it.

    A layer may be meant to make so much of so little: the logits of a large vocabulary.
    """
    study, request = circumstances.study, circumstances.request
    if not circumstances.names_known:
        return False
    times = circumstances.needs.times_the_largest
    if way is not None and times is None:
        times = times_the_largest(study, request, LEAST_TIMES)
    if times is None:
        return False
    known = any(True for module in (chunk_loss, fused_attention) for _ in module.propose(circumstances))
    return not known and not is_of_a_layer(study, request)
