"""Scores of attention between pixels that no name tells: a product, its scale and its softmax, as large as one another.

``q @ k.transpose(-2, -1)`` makes something larger than queries and keys, ``.softmax(dim=-1)`` and ``torch.softmax``
have no frame of their own, and the product with the values makes something smaller. No layer comes in between. What is
joined is larger than its parts, too, but nothing as large follows without a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from oomscope.analysis.plan.requests.facts import SMALL, Facts
from oomscope.analysis.plan.requests.scores import LEAST_TOKENS, pixels
from oomscope.frozen import frozen
from oomscope.model import BoolArray, Frame, FrameKind, IntArray, frame_kind

STAGES = 2
"""Of scores, as large as one another: a product and its softmax."""
MASK = 4
"""Times as many bytes has a float32 as a truth value."""
FLOATS = (4, 2)
_MODULE = "_call_impl"
_OF_SCORES = {"einsum", "softmax"}


@frozen(eq=False)
class InBetween:
    """Scores of one call, as int64 numbers of requests.

    Attributes:
        made: the product, what is computed with it, and its softmax.
        dropped: what a dropout makes of that: its mask, and as much again.
    """

    made: IntArray
    dropped: IntArray


def scores_in_between(facts: Facts, at_once: BoolArray, side: IntArray, samples: IntArray) -> BoolArray:
    """bool[requests]: such scores, with what a dropout makes of them and what a backward makes that only they are.

    Args:
        facts: what is known of each request.
        at_once: bool[requests], which are given back at once, as workspaces are.
        side: int64[requests], of the image that each was made at; 1: not known.
        samples: int64[requests], likewise the batch; 0: not known, taken for one.
    """
    found = np.zeros(len(side), np.bool_)
    for one in in_between(facts, at_once):
        first = one.made[0]
        if _is_of_pairs(int(facts.size[first]), int(side[first]), max(int(samples[first]), 1)):
            found[one.made] = found[one.dropped] = True
    others = np.unique(facts.size[facts.forward & facts.framed & ~found])
    sizes = np.setdiff1d(np.unique(facts.size[found]), others)
    return np.asarray(found | (facts.backward & np.isin(facts.size, sizes)))


def in_between(facts: Facts, at_once: BoolArray) -> list[InBetween]:
    """All that is made so, of whatever size; see `scores_in_between`."""
    rows = np.flatnonzero(facts.forward & facts.framed & ~at_once)
    size, stack, layered = facts.size[rows], facts.stack[rows], ~_may_be_scores(facts)[rows]
    found = []
    for run in _as_large(size, layered):
        dropped = _dropped(facts, rows, run[-1] + 1, int(size[run[-1]]))
        behind = run[-1] + 1 + len(dropped)
        if stack[run[0]] != stack[run[-1]] and behind < len(rows) and not layered[behind]:
            found.append(InBetween(rows[run], dropped))
    return found


def _may_be_scores(facts: Facts) -> BoolArray:
    """bool[requests]: what a module makes on a line of its own, or by torch's functions for products and softmaxes."""
    stacks = facts.study.snapshot.stacks
    own = [_is_own(stacks[one]) for one in range(len(stacks))]
    return np.array([*own, False])[facts.stack] & ~facts.layered & ~facts.linear


def _is_own(frames: Sequence[Frame]) -> bool:
    frames = [frame for frame in frames if frame_kind(frame.filename) is not FrameKind.CPP]
    in_a_module = any(frame.name == _MODULE for frame in frames)
    return in_a_module and (frames[0].name in _OF_SCORES or frame_kind(frames[0].filename) is not FrameKind.TORCH)


def _as_large(size: IntArray, layered: BoolArray) -> list[list[int]]:
    """Places one after another that are as large, made by no layer, and larger than what is before and behind them."""
    groups = [list(places) for _, places in groupby(range(len(size)), lambda place: (size[place], layered[place]))]
    found = []
    for before, own, after in zip(groups, groups[1:], groups[2:], strict=False):
        large = int(size[own[0]])
        smaller = size[before[-1]] < large > size[after[0]]
        if len(own) >= STAGES and large >= SMALL and smaller and not layered[own[0]]:
            found.append(own)
    return found


def _is_of_pairs(size: int, side: int, samples: int) -> bool:
    """Whether it has heads of a number for each two pixels of a sample, of which one may be of a smaller image."""
    counts = {count for count in pixels([side]) if count >= LEAST_TOKENS} if side > 1 else set()
    pairs = {one * other for one in counts for other in counts}
    heads = (
        size // (pair * samples * item) for pair in pairs for item in FLOATS if size % (pair * samples * item) == 0
    )
    return any(map(_is_usual, heads))


def _is_usual(heads: int) -> bool:
    """Whether models have so many heads: 8, 12, 14, 20, 25, but neither 77 nor 13, which are tokens of a text, say."""
    for prime in (2, 3, 5, 7):
        while heads % prime == 0 and heads > 1:
            heads //= prime
    return heads == 1


def _dropped(facts: Facts, rows: IntArray, place: int, size: int) -> IntArray:
    """What a dropout makes of scores: a mask, and something as large."""
    end = place
    while end < len(rows) and facts.dropout[rows[end]] and int(facts.size[rows[end]]) in (size, size // MASK):
        end += 1
    return rows[place:end]
