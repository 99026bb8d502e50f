"""Keys and values of the tokens so far, which a model keeps to attend to them."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.model import BoolArray
from oomscope.model.ordering import ascending

SLUG = "kv_cache"
CATEGORIES = (kinds.ACTIVATION, kinds.TEMPORARY, kinds.BUFFER, kinds.INPUT, kinds.UNKNOWN)
BECOMES = kinds.BUFFER
EVIDENCE = (
    "allocated_in_a_function_or_file_called_cache", "equal_blocks_reserved_before_any_forward",
    "replaced_by_a_larger_one_in_every_forward",
)  # fmt: skip
LOOKS_LIKE = ("accumulated_tensors", "buffers_of_a_model", "batch_made_in_advance")

LEAST_CACHES = 4
"""Blocks: keys and values of two layers. Two equal blocks, or three, are made in advance for many reasons."""
LEAST_SHARE = 0.1
"""Of the live bytes; keys and values that are reserved in advance fill the card, a batch or a mask does not."""
NEARLY_AS_LARGE = 0.9
"""Of the largest: the caches of all layers have the same shape, and one of them may be a token longer."""


def find(live: LiveBlocks) -> BoolArray:
    """What bears the name, what is reserved in advance, and what a model joins its tokens to."""
    named = live.marked(Mark.CACHE)
    found = live.of(kinds.ACTIVATION, kinds.TEMPORARY, kinds.BUFFER, kinds.UNKNOWN) & named
    found |= _reserved(live)
    for one in live.growth:
        rows = live.growing(one)
        found |= rows & named
        if one.kind == "reallocation":
            found |= rows & remembers_tokens(live, rows)
    return np.asarray(found)


def remembers_tokens(live: LiveBlocks, rows: BoolArray) -> BoolArray:
    """Which of `rows`, blocks that larger ones replace, are a model's memory of its tokens.

    A model that joins a little to a tensor in every forward remembers its tokens; and so does a loop around one that
    joins to a tensor for each layer.
    """
    in_model = (live.role == Role.FORWARD) | live.marked(Mark.ATTENTION)
    largest = live.bytes[rows].max(initial=0)
    alike = np.count_nonzero(live.bytes[rows] >= NEARLY_AS_LARGE * largest)
    return np.asarray(rows & (in_model | (alike >= LEAST_CACHES and live.only_infers)))


def _reserved(live: LiveBlocks) -> BoolArray:
    """Keys and values reserved in advance: equal blocks, two a layer, from one line, before a model first runs.

    Only where nothing trains, and a model is there to use them. Two engines may have the line in common, each with
    blocks of its own size; the second is loaded when the first has run for long.
    """
    chosen = live.none()
    if not live.only_infers:
        return chosen
    early = live.of(kinds.UNKNOWN) & live.before_first_run & (live.stack >= 0)
    for stack in ascending(live.stack[early]).tolist():
        mine = early & (live.stack == stack)
        equal = bool((np.unique(live.bytes[mine], return_counts=True)[1] >= LEAST_CACHES).all())
        if equal and live.bytes[mine].sum() >= LEAST_SHARE * live.bytes.sum():
            chosen |= mine
    return chosen
