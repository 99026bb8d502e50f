"""The rules of torch's allocator in words, for a replay that departs from its recording."""

from __future__ import annotations

from oomscope.allocator.rules import RULES

_WHAT = {
    "free_block": "which free block serves a request, and how it is split",
    "segment_size": "how large a new segment is",
    "new_segment": "when a new segment is obtained",
    "release": "which cached memory is given back, and when",
    "expandable": "how an expandable segment is mapped and unmapped",
    "limit": "when a request fails",
    "chosen_address": "blocks at addresses that torch chose itself, which are not modelled",
    "reserve": "expandable segments of a size that was set, which are not modelled",
    "unknown_setting": "a setting that is not known here",
}


def rule_text(slug: str) -> str:
    """``how large a new segment is (get_allocation_size in c10/cuda/CUDACachingAllocator.cpp)``."""
    rule = RULES[slug]
    return f"{_WHAT[slug]} ({', '.join(rule.functions)} in {rule.source})"
