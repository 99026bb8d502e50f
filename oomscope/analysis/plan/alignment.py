"""Which request of one recording is which of another: by stack and order, around what only one of them has.

Where kernels change with the shape, some requests come and go: workspaces mostly, which are given back at once. So the
others are aligned first, by stack and by sizes that the two recordings can have in common, and the workspaces between
them afterwards.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from oomscope.analysis.plan.subsequences import common
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray

MOST_CELLS = 4_000_000
"""Of the table that a comparison in full would fill; longer stretches are cut at what is unique in both."""
DEGREES = (0, 1, 2)
LARGE, NEARLY = 16 << 20, 0.03
"""Bytes of what is worth a look when sizes of both recordings are not quite in the ratio of their parameters."""
UNFRAMED = -1
"""The key of requests without Python frames: most of a backward pass."""


@frozen(eq=False)
class Stretch:
    """Requests in their order, with what tells which is which.

    Attributes:
        key: int64, the number of the stack.
        size: int64, bytes.
        at_once: bool, whether it is given back before anything else is done.
    """

    key: IntArray
    size: IntArray
    at_once: BoolArray

    def those(self, rows: IntArray) -> Stretch:
        """Some of them."""
        return Stretch(self.key[rows], self.size[rows], self.at_once[rows])


def align(one: Stretch, other: Stretch, ratios: Sequence[float]) -> IntArray:
    """For each request of a stretch, the number of its like in another; -1 where it has none.

    Args:
        one: the stretch.
        other: another.
        ratios: by what the other's parameters are larger, for those that differ.
    """
    if np.array_equal(one.key, other.key):
        return np.arange(len(one.key))
    mine, theirs = np.flatnonzero(~one.at_once), np.flatnonzero(~other.at_once)
    partner = np.full(len(one.key), -1, np.int64)
    firsts, seconds = _as_often(one.key, other.key, mine, theirs)
    if np.array_equal(one.key[firsts], other.key[seconds]):
        partner[firsts] = seconds
    taken = np.zeros(len(other.key), np.bool_)
    taken[partner[partner >= 0]] = True
    mine, theirs = mine[partner[mine] < 0], theirs[~taken[theirs]]
    if len(mine) and len(theirs):
        _match_between(partner, mine, theirs, _tokens(one.those(mine), other.those(theirs), ratios))
    _fill_gaps(partner, one.key, other.key)
    _match_nearly(partner, one, other, ratios)
    return partner


def _match_nearly(partner: IntArray, one: Stretch, other: Stretch, ratios: Sequence[float]) -> None:
    """Match what is large and left, as where the data decides how long the longest sample of a batch is."""
    taken = np.zeros(len(other.key), np.bool_)
    taken[partner[partner >= 0]] = True
    mine, theirs = (
        np.flatnonzero(left & ~part.at_once & (part.size >= LARGE))
        for left, part in ((partner < 0, one), (~taken, other))
    )
    if len(mine) and len(theirs):
        _match_between(partner, mine, theirs, _tokens(one.those(mine), other.those(theirs), ratios, NEARLY))


def _as_often(key: IntArray, other_key: IntArray, mine: IntArray, theirs: IntArray) -> tuple[IntArray, IntArray]:
    """Those of the rows whose stacks stand as often in both: only the first step makes an optimizer's state."""
    number, others = key[mine] - UNFRAMED, other_key[theirs] - UNFRAMED
    stacks = max(int(number.max(initial=0)), int(others.max(initial=0))) + 1
    same = np.bincount(number, minlength=stacks) == np.bincount(others, minlength=stacks)
    return mine[same[number]], theirs[same[others]]


def _match_between(partner: IntArray, mine: IntArray, theirs: IntArray, tokens: tuple[list[int], list[int]]) -> None:
    """Match the rows left by their tokens, within what stands between two pairs that are known."""
    paired = np.flatnonzero(partner >= 0)
    edges = np.searchsorted(mine, [0, *paired.tolist(), len(partner)]).tolist()
    others = np.searchsorted(theirs, [0, *partner[paired].tolist(), np.iinfo(np.int64).max]).tolist()
    for (begin, end), (low, high) in zip(pairwise(edges), pairwise(others), strict=True):
        if begin < end and low < high:
            for first, second in _matched(tokens[0][begin:end], tokens[1][low:high], begin, low):
                partner[mine[first]] = theirs[second]


def _tokens(one: Stretch, other: Stretch, ratios: Sequence[float], nearly: float = 0.0) -> tuple[list[int], list[int]]:
    """Numbers for requests of both; equal where the stack is the same and the sizes can be of one tensor.

    Sizes belong together if they are equal, or if one is the other times a ratio of the parameters to some degree; or
    nearly so.
    """
    stacked = np.concatenate([np.stack([part.key, part.size], axis=1) for part in (one, other)])
    distinct, which = np.unique(stacked, axis=0, return_inverse=True)
    which = which.reshape(-1)
    number = {(one, two): row for row, (one, two) in enumerate(distinct.tolist())}
    group = list(range(len(distinct)))

    def root(row: int) -> int:
        while group[row] != row:
            group[row] = group[group[row]]
            row = group[row]
        return row

    for row in np.unique(which[: len(one.key)]).tolist():
        stack, bytes_ = distinct[row].tolist()
        wanted = [bytes_ * ratio**degree for ratio in ratios for degree in DEGREES[1:]]
        likes = [number[like] for size in wanted if (like := (stack, round(size))) in number]
        if nearly:
            apart = np.abs(distinct[:, 1] - np.array([bytes_, *wanted])[:, None]) <= nearly * bytes_
            likes = np.flatnonzero(apart.any(axis=0) & (distinct[:, 0] == stack)).tolist()
        for one_like in likes:
            group[root(row)] = root(one_like)
    roots = [root(row) for row in range(len(group))]
    numbers = np.array(roots, np.int64)[which]
    return numbers[: len(one.key)].tolist(), numbers[len(one.key) :].tolist()


def _matched(one: list[int], other: list[int], first: int, second: int) -> list[tuple[int, int]]:
    """Ascending pairs of equal tokens; cut at what is unique in both where the table would be too large."""
    pairs: list[tuple[int, int]] = []
    begin = 0
    while begin < min(len(one), len(other)) and one[begin] == other[begin]:
        pairs.append((first + begin, second + begin))
        begin += 1
    end = 0
    while end < min(len(one), len(other)) - begin and one[-1 - end] == other[-1 - end]:
        end += 1
    tail = [(first + len(one) - left, second + len(other) - left) for left in range(end, 0, -1)]
    one, other = one[begin : len(one) - end], other[begin : len(other) - end]
    first, second = first + begin, second + begin
    if one and other:
        anchors = _anchors(one, other) if len(one) * len(other) > MOST_CELLS else []
        if anchors:
            edges = [(-1, -1), *anchors, (len(one), len(other))]
            for (i, j), (k, m) in pairwise(edges):
                pairs += _matched(one[i + 1 : k], other[j + 1 : m], first + i + 1, second + j + 1)
                if (k, m) != (len(one), len(other)):
                    pairs.append((first + k, second + m))
        elif len(one) * len(other) <= 16 * MOST_CELLS:
            pairs += [(first + here, second + there) for here, there in common(one, other)]
    return sorted(pairs) + tail


def _anchors(one: list[int], other: list[int]) -> list[tuple[int, int]]:
    """Pairs of tokens that are unique in both, in the order of both: the longest such row of pairs."""
    unique, places = np.unique(np.array(one), return_index=True)
    counts = np.bincount(np.searchsorted(unique, np.array(one)), minlength=len(unique))
    alone = dict(zip(unique[counts == 1].tolist(), places[counts == 1].tolist(), strict=True))
    seen: dict[int, int] = {}
    twice = set()
    for place, token in enumerate(other):
        if token in seen:
            twice.add(token)
        seen[token] = place
    found = sorted((alone[token], place) for token, place in seen.items() if token in alone and token not in twice)
    return _longest_ascending(found)


def _longest_ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    ends: list[int] = []
    last: list[int] = []
    before = [-1] * len(pairs)
    for row, (_, place) in enumerate(pairs):
        at = bisect_left(ends, place)
        before[row] = last[at - 1] if at else -1
        if at == len(ends):
            ends.append(place)
            last.append(row)
        else:
            ends[at], last[at] = place, row
    chain = []
    row = last[-1] if last else -1
    while row >= 0:
        chain.append(pairs[row])
        row = before[row]
    return chain[::-1]


def _fill_gaps(partner: IntArray, key: IntArray, other_key: IntArray) -> None:
    """Pair what stands between two pairs, where both have the same stacks there in the same order."""
    paired = np.flatnonzero(partner >= 0)
    edges = [-1, *paired.tolist(), len(partner)]
    theirs = [-1, *partner[paired].tolist(), len(other_key)]
    for (left, right), (low, high) in zip(pairwise(edges), pairwise(theirs), strict=True):
        if right - left < 2 or high - low < 2:
            continue
        mine, others = list(range(left + 1, right)), list(range(low + 1, high))
        for one, two in _by_stack(mine, others, key, other_key):
            partner[one] = two


def _by_stack(mine: list[int], others: list[int], key: IntArray, other_key: IntArray) -> list[tuple[int, int]]:
    """Pairs of equal stacks: each stack that stands there as often in both."""
    pairs = []
    for stack in dict.fromkeys(key[mine].tolist()):
        ones = [row for row in mine if key[row] == stack]
        twos = [row for row in others if other_key[row] == stack]
        if len(ones) == len(twos):
            pairs += list(zip(ones, twos, strict=True))
    return pairs
