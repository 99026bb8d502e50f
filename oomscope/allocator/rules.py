"""The rules of torch's allocator by name: which of its functions each models, and where to read them.

Sources are files of PyTorch's repository. What changed in which release is in `torch_releases`; the model was checked
against recordings of torch 2.1 to 2.11 and read against the sources up to `LATEST`.
"""

from __future__ import annotations

from collections.abc import Mapping

from oomscope.frozen import frozen

_ALLOCATOR = "c10/cuda/CUDACachingAllocator.cpp"
_CONFIG = "c10/core/AllocatorConfig.h"
_CUDA_CONFIG = "c10/cuda/CUDAAllocatorConfig.h"


@frozen
class Rule:
    """One rule that a replay follows.

    Attributes:
        functions: torch's own names of what it models.
        source: the file that has them.
        settings: keys of the conf string that it depends on.
    """

    functions: tuple[str, ...]
    source: str
    settings: tuple[str, ...] = ()


RULES: Mapping[str, Rule] = {
    "free_block": Rule(
        ("get_free_block", "should_split", "round_size"),
        _ALLOCATOR,
        ("max_split_size_mb", "roundup_power2_divisions", "max_non_split_rounding_mb"),
    ),
    "segment_size": Rule(("get_allocation_size",), _ALLOCATOR, ("large_segment_size_mb",)),
    "new_segment": Rule(("alloc_block",), _ALLOCATOR, ("per_process_memory_fraction", "throw_on_cudamalloc_oom")),
    "release": Rule(
        ("release_cached_blocks", "release_available_cached_blocks", "garbage_collect_cached_blocks"),
        _ALLOCATOR,
        ("garbage_collection_threshold",),
    ),
    "expandable": Rule(
        ("try_allocate_expandable_block", "find_expandable_block", "unmap_block"),
        _ALLOCATOR,
        ("expandable_segments", "large_segment_size_mb"),
    ),
    "limit": Rule(("alloc_block", "setMemoryFraction"), _ALLOCATOR, ("per_process_memory_fraction",)),
    # Known not to be modelled: a recording that needs one of these departs from the replay.
    "chosen_address": Rule(("mallocWithAddress",), _ALLOCATOR),
    "reserve": Rule(
        ("clamp_reserve_bytes",), _CUDA_CONFIG, ("expandable_segments_reserve", "expandable_segments_reserve_by_class")
    ),
    "unknown_setting": Rule(("parseArgs",), _CONFIG),
}
"""By slug; `oomscope.wording.allocator_rules` has their words."""
