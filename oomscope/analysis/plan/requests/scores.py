"""Scores of attention that a program writes out, where no name says attention: told by their sizes.

The square of the number of tokens divides them, and does not divide what the linear layers beside them make; or a
softmax makes one of them; or one call makes several as large, beside or between its queries, keys and values and the
layer behind them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from oomscope.analysis.plan.requests.calls import Path, module_of
from oomscope.model import BoolArray, IntArray, StackTable

LARGER = 1.25
"""Times the largest output of a linear layer of the same module."""
LEAST_TOKENS = 32
LEAST_OF_A_WINDOW = 1 << 20
"""Bytes of scores within windows, which may be smaller than what linear layers make: what is smaller is their bias."""
MOST = 0.5
PROJECTIONS, STAGES, PAIR = 3, 3, 2
"""Linear layers of an attention; what it makes of the size of its scores: a product, mostly its scale, a softmax."""
LEAST_ODD, RARE = 13, 15
"""The odd part of a number of tokens that few widths have, and whose square few sizes have."""
HALVINGS = 6
"""Of the side of an image, down to the pixels that attend to one another."""
LEAST_HEAD, WIDEST_HEAD = 8, 512
"""Channels of a head."""
_ELEMENTWISE = re.compile(r"torch/nn/modules/(dropout|activation)\.py")
SMALL = 16
"""Times as large is a result of a layer at least as what a kernel of its beside it needs, which is given back."""
LEAST_CALLS = 2
"""Of such a module in a step: a model has several layers."""


def written_out(
    size: IntArray,
    stack: IntArray,
    rows: IntArray,
    is_linear: BoolArray,
    known: Mapping[int, Path],
    told: Iterable[int],
    steps: int,
    is_softmax: BoolArray,
    windows: Iterable[int] = (),
) -> IntArray:
    """The numbers of the requests that are scores.

    Args:
        size: int64[requests].
        stack: int64[requests], the number of the stack of each.
        rows: the numbers of those that a forward makes and that have frames, without workspaces.
        is_linear: bool[requests], which are outputs of linear layers.
        known: the path of each stack.
        told: how many tokens there may be, as the recording knows.
        steps: how many forwards there are.
        is_softmax: bool[requests], which a function called softmax makes.
        windows: how many tokens attend to one another where an image is cut into windows.
    """
    found = [np.zeros(0, np.int64)]
    for own, linear in _modules(stack, rows, is_linear, known):
        outputs = size[linear]
        far = own[size[own] > LARGER * int(outputs.max())]
        for tokens in sorted(told):
            square = far[size[far] % (tokens * tokens) == 0]
            tells = is_softmax[square].any() or _by_size(outputs, tokens) or _in_place_of_one(square, stack[linear])
            tells = tells and _are_of_one_size(size[square])
            if tokens >= LEAST_TOKENS and tells and len(square) >= LEAST_CALLS * steps:
                found.append(square)
        for tokens in sorted(windows):
            square = own[(size[own] % (tokens * tokens) == 0) & (size[own] >= LEAST_OF_A_WINDOW)]
            if _by_size(outputs, tokens) and len(square) >= LEAST_CALLS * steps:
                found.append(square)
    return np.unique(np.concatenate(found))


def between_projections(
    size: IntArray,
    stack: IntArray,
    rows: IntArray,
    is_linear: BoolArray,
    told: Collection[int],
    *,
    is_common: bool = False,
) -> IntArray:
    """The numbers of scores between a layer of queries, keys and values and one that is as large as one of these.

    The first may be one layer of all three or three layers, of one line or several. What a module has beside its
    attention does not matter. Arguments as of `written_out`; `is_common`: the numbers of tokens divide much else, so
    that scores of three layers are told only where a product copies queries and keys.
    """
    edges = np.flatnonzero(np.diff(is_linear[rows] * (stack[rows] + 1))) + 1
    parts = [part for part in np.split(rows, edges) if len(part)]
    found = [np.zeros(0, np.int64)]
    for place, part in enumerate(parts[1:-1], 1):
        before, after = parts[place - 1], parts[place + 1]
        if is_linear[part[0]] or not (is_linear[before[0]] and is_linear[after[0]]):
            continue
        each = int(size[after[0]])
        packed = int(size[before[0]]) == PROJECTIONS * each
        layers = [one for one in parts[max(place - PROJECTIONS, 0) : place] if is_linear[one[0]]]
        made = size[np.concatenate(layers)]
        made = made[made * SMALL >= each]
        if is_common:
            # What is as large as that layer is an activation of it.
            part = part[size[part] != size[before[0]]] if packed else _behind_copies(size, stack, part, each)
        if packed or made[-PROJECTIONS:].tolist() == [each] * PROJECTIONS:
            found += [part[size[part] == one] for one in _scores_among(size[part], each, told, STAGES)]
        elif made[-2:].tolist() in ([each, 2 * each], [2 * each, each]):
            # Keys and values are one layer. So few are as large by chance that a product and its softmax are enough.
            found += [part[size[part] == one] for one in _scores_among(size[part], each, told, PAIR)]
    return np.concatenate(found)


def _behind_copies(size: IntArray, stack: IntArray, part: IntArray, each: int) -> IntArray:
    """Those of `part` from a product on that copies queries and keys of `each` bytes, as heads that were split off."""
    line = (stack[part[2:]] == stack[part[1:-1]]) & (stack[part[2:]] == stack[part[:-2]])
    copies = (size[part[1:-1]] == each) & (size[part[:-2]] == each) & (size[part[2:]] > each)
    places = np.flatnonzero(line & copies)
    return part[places[0] + 2 :] if len(places) else part[:0]


def _scores_among(sizes: IntArray, each: int, told: Collection[int], stages: int) -> list[int]:
    """Those of `sizes` that can be scores of queries of `each` bytes, of a whole number of channels a head.

    Where few sizes have the number of tokens as a factor, they may be smaller than queries, and a product and its
    softmax are enough.
    """
    found = []
    for one, count in zip(*(column.tolist() for column in np.unique(sizes, return_counts=True)), strict=True):
        fitting = [tokens for tokens in told if _is_of_heads(one, each, tokens)]
        large = one > LARGER * each and count >= stages and max(fitting, default=0) >= LEAST_TOKENS
        rare = one != each and count >= PAIR and any(odd_part(tokens) >= RARE for tokens in fitting)
        found += [one] if large or rare else []
    return found


def _is_of_heads(scores: int, each: int, tokens: int) -> bool:
    channels, rest = divmod(each * tokens, scores)
    return not rest and scores % (tokens * tokens) == 0 and LEAST_HEAD <= channels <= WIDEST_HEAD


def odd_part(number: int) -> int:
    """What is left of a number that is halved until it is odd: where that is large, few sizes have it by chance."""
    return number // (number & -number)


def _by_size(outputs: IntArray, tokens: int) -> bool:
    """Whether the linear layers have so many tokens, most of them, and none the square of that."""
    linear = outputs % tokens == 0
    return bool(linear.mean() > MOST and (outputs[linear] % (tokens * tokens) != 0).all())


def _in_place_of_one(square: IntArray, linear: IntArray) -> bool:
    """Whether each call makes several as large beside queries, keys and values: scores, scaled, masked, a softmax."""
    layers = len(np.unique(linear))
    return layers >= PROJECTIONS and len(square) >= STAGES * len(linear) / layers


def _modules(
    stack: IntArray, rows: IntArray, is_linear: BoolArray, known: Mapping[int, Path]
) -> list[tuple[IntArray, IntArray]]:
    """Of each module that has linear layers: what its own lines make, and what its linear layers do."""
    own: dict[object, list[int]] = {}
    linear: dict[object, list[int]] = {}
    for row, layer in zip(rows.tolist(), is_linear[rows].tolist(), strict=True):
        path = known[int(stack[row])]
        target, owner = (linear, path[:-1]) if layer else (own, _without_dropout(path))
        target.setdefault(module_of(owner), []).append(row)
    return [(np.array(own[module]), np.array(linear[module])) for module in own if module in linear]


def _are_of_one_size(sizes: IntArray) -> bool:
    """Whether all are of one size, or of it in other precisions."""
    shares = np.unique(sizes).max(initial=1) / np.maximum(np.unique(sizes), 1)
    return bool(np.isin(shares, (1, 2, 4, 8)).all())


def _without_dropout(path: Path) -> Path:
    """A path without the dropout or softmax module that it ends in."""
    return path[:-1] if len(path) > 1 and _ELEMENTWISE.search(path[-1][0][0]) else path


def pixels(sides: Iterable[int]) -> set[int]:
    """How many pixels of an image may attend to one another, of each of its `sides`: as halved by convolutions."""
    halved = ((side, 1 << power) for side in sides for power in range(HALVINGS + 1))
    return {(side // part) ** 2 for side, part in halved if side % part == 0 and side > part}


def softmaxes_by_name(stacks: StackTable, stack: IntArray) -> BoolArray:
    """bool[requests]: which a function called softmax makes, by the number of the stack of each."""
    inside = [any("softmax" in frame.name for frame in stacks[one]) for one in range(len(stacks))]
    found: BoolArray = np.array([*inside, False])[stack]
    return found
