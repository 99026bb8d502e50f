"""What slugs are called: causes, drivers, categories, phases and the rest, the same in every format."""

from __future__ import annotations

from collections.abc import Mapping

from oomscope.wording.clean import clean
from oomscope.wording.drivers import DRIVER_LABELS as DRIVER_LABELS

CAUSE_LABELS = {
    "oversized_request": "one request larger than the limit",
    "growth": "memory growth",
    "retained": "memory left over from finished work",
    "private_pools": "free memory inside private pools",
    "other_stream": "free memory that belongs to another stream",
    "outside_allocator": "memory outside PyTorch's allocator",
    "fragmentation": "fragmentation",
    "capacity": "too much needed at once",
}
CATEGORY_LABELS = {
    "parameter": "parameters",
    "gradient": "gradients",
    "optimizer_state": "optimizer state",
    "buffer": "buffers",
    "activation": "activations",
    "temporary": "temporaries",
    "input": "inputs",
    "workspace": "workspaces",
    "unknown": "unknown",
}
HOLDER_LABELS = CATEGORY_LABELS | {
    "graph": "autograd graph",
    "needless_graph": "autograd graph",
    "tensor": "tensors",
    "in_flight": "call in progress",
}
PHASE_LABELS = {
    "before_recording": "before the recording",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "other": "other code",
}
CONTRIBUTING_LABELS = {
    "memory_fraction_cap": "a memory cap on this process (the device itself still had free memory)",
}
CONFIDENCE_LABELS = {"high": "high confidence", "medium": "medium confidence", "low": "low confidence"}
CATEGORIES_SOURCE_LABELS = {
    "recorded": "as recorded",
    "inferred": "inferred from stacks and timing",
    "mixed": "partly recorded, partly inferred",
}
STEPS_SOURCE_LABELS = {
    "annotations": "from the ranges that the program marked",
    "recorded": "as recorded",
    "inferred": "inferred from what repeats",
}
LIMIT_LABELS = {
    "recorded": "recorded",
    "bracket": "cap, inferred",
    "device": "what the device could give",
}
GROWTH_LABELS = {
    "generations": "more instances stay alive",
    "reallocation": "reallocated larger each time",
    "time": "rises over time",
}
BILL_LABELS = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_state": "optimizer state",
    "activations_and_temporaries": "activations and temporaries",
}
SITE_LABELS = {
    "backward": "backward, no Python frames",
    "backward_of": "its backward",
    "no_frames": "no Python frames recorded",
    "before_recording": "allocated before the recording began",
    "overwritten": "entry overwritten, no Python frames",
    "before_window": "allocated before the part shown",
    "no_stack": "no stack recorded",
    "only_torch": "inside torch, no frame of your code",
    "all_others": "all others",
    "unaccounted": "not accounted for",
}
"""Why memory has no site; the slugs are those of `oomscope.analysis.attribution.by_site`."""


def label(slug: str, labels: Mapping[str, str]) -> str:
    """What `slug` is called; a slug without a label of its own is shown as it is."""
    return labels.get(slug) or clean(slug.replace("_", " "))
