"""Scores of attention that are written out: tokens × tokens."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.calls import calls
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.model import BoolArray
from oomscope.model.ordering import ascending

SLUG = "attention_scores"
CATEGORIES = (kinds.ACTIVATION, kinds.TEMPORARY)
BECOMES = None
EVIDENCE = (
    "larger_than_the_linear_layers_of_its_call", "a_softmax_or_a_product_of_batches_made_it",
    "grows_faster_than_the_linear_layers",
)  # fmt: skip
LOOKS_LIKE = ("hidden_layer_of_a_wide_mlp", "logits", "messages_along_the_edges_of_a_graph")

_PROJECTS = "_in_projection"
LEAST_BYTES = 1 << 20
"""Of a block; attention over few tokens is smaller than any other activation, and no driver."""
LARGER = 1.5
"""Times the largest output of a linear layer in the same call. The layer that makes queries, keys and values together
has three times their size, and is such an output; what is larger by half was not made from it element by element."""
MUCH_LARGER = 4.0
"""Times, where no name says attention and no second block is as large: the hidden layer of an MLP is 4 × the model's
width, and is no larger than its own linear layer's output."""
LEAST_LONGER = 1.25
"""Times all batches before it: growth of a batch that is hardly longer does not tell linear from square."""
FASTER = 1.4
"""The power between linear (1) and square (2): a larger batch may be in part more sequences, not longer ones."""


def find(live: LiveBlocks) -> BoolArray:
    """What a function with linear layers makes that is far larger than all their outputs.

    In a function called attention one such block is enough. Elsewhere size alone proves nothing: the messages along the
    edges of a graph are as large. A softmax or a product of batches must have made a block of that size, which C++
    frames show, and it takes two of the size (scores and softmax), or one that is larger still. The linear layers may
    stand in the module's forward and the scores in a function that it calls; then two of a size prove nothing, for much
    else is called from there.
    """
    chosen = live.none()
    linear = live.passing & live.marked(Mark.LINEAR)
    if not linear.any():
        return chosen
    named, projected = live.marked(Mark.ATTENTION), _projected(live)
    for whole_module in (False, True):
        call = calls(live, live.passing, whole_module=whole_module)
        for one in ascending(call[linear & (call >= 0)]).tolist():
            same = live.passing & (call == one)
            largest = int(live.bytes[same & linear].max())
            far = same & ~linear & (live.bytes >= max(LARGER * largest, LEAST_BYTES))
            sizes, count = np.unique(live.bytes[far], return_counts=True)
            twice = np.isin(live.bytes, sizes[count > 1]) & (not whole_module)
            of_product = np.isin(live.bytes, live.bytes[far & live.marked(Mark.PRODUCT)])
            chosen |= far & (named | (of_product & (twice | (live.bytes >= MUCH_LARGER * largest))))
            chosen |= far & _outgrows(live, same, linear, far & ~chosen)
    return (chosen | _beside_copies(live, linear, named)) & ~projected


def _projected(live: LiveBlocks) -> BoolArray:
    """What torch's own attention makes of its input: queries, keys and values, which it copies into one block."""
    stacks = live.study.snapshot.stacks
    used = [one for one in ascending(live.stack).tolist() if one >= 0]
    inside = [one for one in used if any(frame.name.startswith(_PROJECTS) for frame in stacks[one][:2])]
    return np.isin(live.stack, inside)


def _beside_copies(live: LiveBlocks, linear: BoolArray, named: BoolArray) -> BoolArray:
    """What a function called attention makes where none of its module's linear layers has left anything.

    Queries, keys and values were copied then, as heads are split off, and it is far larger than those copies.
    """
    chosen = live.none()
    call = calls(live, live.passing, whole_module=True)
    for one in ascending(call[named & live.passing & (call >= 0)]).tolist():
        same = live.passing & (call == one)
        copies = same & ~named
        if not (same & linear).any() and copies.any():
            chosen |= same & named & (live.bytes >= max(LARGER * int(live.bytes[copies].max()), LEAST_BYTES))
    return chosen


def _outgrows(live: LiveBlocks, same: BoolArray, linear: BoolArray, far: BoolArray) -> BoolArray:
    """Blocks of `far` whose lines grow faster from batch to batch than the linear layers of their call.

    Outputs grow with the number of tokens, scores with its square.
    """
    chosen = live.none()
    if not far.any():
        return chosen
    history, sites = live.study.history, live.study.sites
    lifetimes = history.lifetimes
    past = (lifetimes.born >= 0) & (lifetimes.born < lifetimes.born[live.rows[live.passing]].min())
    requested = np.where(lifetimes.requested >= 0, lifetimes.requested, history.size)
    is_linear = (live.study.roles.mark[lifetimes.stack] & int(Mark.LINEAR)) != 0
    past_site = sites.sites(lifetimes.stack)

    def grown(rows: BoolArray, past_rows: BoolArray) -> float:
        return float(live.bytes[rows].max()) / max(float(requested[past_rows].max(initial=0)), 1.0)

    linear_sites = ascending(live.site[same & linear])
    tokens = grown(same & linear, past & is_linear & np.isin(past_site, linear_sites))
    for one in ascending(live.site[far]).tolist():
        here = past & ~is_linear & (past_site == one)
        mine = far & (live.site == one)
        if here.any() and tokens >= LEAST_LONGER and grown(mine, here) >= tokens**FASTER:
            chosen |= mine
    return chosen
