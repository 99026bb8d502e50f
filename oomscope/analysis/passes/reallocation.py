"""Growth by reallocation: each block a little larger than the one it replaces.

`torch.cat` of a cache reads the old block while it writes the new one, so the two overlap for a moment; that is what
sets it apart from activations of batches that happen to become longer.
"""

from __future__ import annotations

import numpy as np

from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending

LEAST_BIRTHS = 8
"""Blocks of one stack; fewer may be batches that happened to become longer."""
LEAST_SIZES = 5
"""Of them that differ."""
LEAST_RISING = 0.5
"""Of the rounds: how many must be larger than the one before. Every join adds something; a batch keeps its size for a
while."""
MOST_FALLS = 0.05
"""Of the blocks: how many may be smaller than the one before, where a new sequence began."""
LEAST_OVERLAP = 0.9
"""Of the blocks: how many must still be there when their successor is made. A join reads the old block."""
LEAST_RELEASED = 0.8
"""Of the blocks: how many must be gone two successors later. What is not is kept, not replaced."""
LEAST_REPLACEMENTS = 3
"""Of each block of a round; so many blocks make a round at most."""
MOST_ROUNDS_AGO = 3
"""Rounds; what has not grown for longer than that was growing earlier and no longer is."""


@frozen(eq=False)
class Reallocation:
    """The live blocks of one stack that were replaced by larger ones.

    Attributes:
        live: int64[…], rows of the lifetimes.
        grown: bytes by which they are larger than their first ancestors.
        per_round: bytes gained by one replacement of all of them.
        rounds: how many replacements there were.
        fit: how straight the sizes rise, R².
    """

    live: IntArray
    grown: int
    per_round: float
    rounds: int
    fit: float


def find_reallocations(history: DeviceHistory, eligible: BoolArray, at: int) -> list[Reallocation]:
    """Every stack whose blocks grow by replacement and of which some are alive once entry `at` has happened."""
    lifetimes = history.lifetimes
    rows = np.flatnonzero(eligible & (lifetimes.stack >= 0) & (lifetimes.born <= at))
    rows = rows[np.lexsort((lifetimes.born[rows], lifetimes.stack[rows]))]
    stack = lifetimes.stack[rows]
    if len(rows) < LEAST_BIRTHS:
        return []
    starts = np.flatnonzero(np.append(True, stack[1:] != stack[:-1]))
    ends = np.append(starts[1:], len(rows))
    alive = np.add.reduceat((lifetimes.freed[rows] > at).astype(np.int64), starts)
    chosen = np.flatnonzero((ends - starts >= LEAST_BIRTHS) & (alive > 0))
    found = [_of_stack(history, rows[starts[one] : ends[one]], at) for one in chosen.tolist()]
    return [one for one in found if one is not None]


def _of_stack(history: DeviceHistory, rows: IntArray, at: int) -> Reallocation | None:
    """Follow the blocks of one stack; where smaller ones from the same line lie between, without those.

    ``cache = torch.cat([cache, step(x)])`` makes the new piece and the joined block on one line.
    """
    size = history.size[rows]
    large = rows[2 * size >= np.maximum.accumulate(size)]
    for some in (rows,) if len(large) == len(rows) else (rows, large):
        if _rises(history.size[some]) and (found := _follow(history, some, at)) is not None:
            return found
    return None


def _rises(size: IntArray) -> bool:
    falls = int(np.count_nonzero(size[1:] < size[:-1]))
    return len(size) >= LEAST_BIRTHS and falls <= MOST_FALLS * len(size) and bool(size[-1] > size[0])


def _follow(history: DeviceHistory, rows: IntArray, at: int) -> Reallocation | None:
    """Whether each of `rows`, in order of birth, replaces the one `lag` before it."""
    lifetimes, size = history.lifetimes, history.size[rows]
    live = rows[lifetimes.freed[rows] > at]
    if len(ascending(size)) < LEAST_SIZES or not len(live):
        return None
    lag = int(np.median(np.diff(np.flatnonzero(np.append(True, size[1:] != size[:-1])))))
    for guess in dict.fromkeys((lag, len(live), len(live) - 1)):
        if 0 < guess <= len(rows) // LEAST_REPLACEMENTS and _replaces(history, rows, guess):
            lag = guess
            break
    else:
        return None
    born = lifetimes.born[rows]
    if at - born[-1] > MOST_ROUNDS_AGO * float(np.median(born[lag:] - born[:-lag])):
        return None
    rounds = size[: len(size) // lag * lag].reshape(-1, lag).sum(axis=1).astype(np.float64)
    if np.mean(np.diff(rounds) > 0) < LEAST_RISING:
        return None
    place = np.arange(len(rounds), dtype=np.float64)
    fit = float(np.corrcoef(place, rounds)[0, 1]) ** 2
    newest = live[-lag:]
    grown = int(history.size[newest].sum()) - int(size[:lag].sum() * len(newest) / lag)
    return Reallocation(live, max(grown, 0), float(np.polyfit(place, rounds, 1)[0]), len(rounds), fit)


def _replaces(history: DeviceHistory, rows: IntArray, lag: int) -> bool:
    """Most blocks are still there when the one `lag` later is born, and gone when the next after that is."""
    lifetimes = history.lifetimes
    born, freed = lifetimes.born[rows], lifetimes.freed[rows]
    successor = born[lag:]
    overlap = freed[:-lag] > successor
    released = freed[: -lag - lag] < born[lag + lag :] if len(rows) > 2 * lag else np.ones(1, np.bool_)
    return bool(np.mean(overlap) >= LEAST_OVERLAP and np.mean(released) >= LEAST_RELEASED)
