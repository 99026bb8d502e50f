"""Results of earlier passes that something keeps, one by one or joined into one ever larger tensor."""

from __future__ import annotations

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers import kv_cache, retained_graph
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray

SLUG = "accumulated_tensors"
CATEGORIES = (kinds.ACTIVATION, kinds.TEMPORARY, kinds.INPUT, kinds.UNKNOWN)
BECOMES = None
EVIDENCE = ("grows_at_one_or_two_lines", "is_replaced_by_a_larger_one_outside_the_model")
LOOKS_LIKE = ("retained_graph", "kv_cache", "data_set_on_the_card")


def find(live: LiveBlocks) -> BoolArray:
    """What grows and is no graph, and what is replaced by larger ones and is no cache."""
    grown = live.generations
    found = live.none() if retained_graph.is_graph(live, grown) else grown.copy()
    for one in live.growth:
        if one.kind == "reallocation":
            rows = live.growing(one)
            found |= rows & ~kv_cache.remembers_tokens(live, rows)
    return found
