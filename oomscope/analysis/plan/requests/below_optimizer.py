"""What a program computes below its optimizer's step, as an evaluation at the end of each round of its loop."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from oomscope.analysis.plan.requests.calls import Line, Path, path_of
from oomscope.model import NO_STACK, BoolArray, IntArray, StackTable
from oomscope.model.ordering import ascending

Place = tuple[tuple[Line, ...], str, str]
"""A function as it was called: the frames above it, its file and its name."""


def below_optimizer(stacks: StackTable, stack: IntArray, of_optimizer: BoolArray) -> BoolArray:
    """bool[requests]: which are made by a later line of the function that steps the optimizer, or that calls what does.

    Of several optimizers the last one counts: a generator may run below the step of its discriminator.

    Args:
        stacks: of the snapshot.
        stack: int64[requests], the number of each one's stack.
        of_optimizer: bool[requests], which an optimizer makes.
    """
    last: dict[Place, int] = defaultdict(int)
    for frames in _frames(stacks, stack[of_optimizer]).values():
        for place, line in _places(frames):
            last[place] = max(last[place], line)
    below = [one for one, frames in _frames(stacks, stack[~of_optimizer]).items() if _is_below(frames, last)]
    return np.isin(stack, below) if below else np.zeros(len(stack), np.bool_)


def share_of_batch(stacks: StackTable, stack: IntArray, size: IntArray, below: BoolArray) -> float:
    """How large what is made `below` is beside what the same modules make above, by its bytes; 1 if nothing tells.

    Args:
        stacks: of the snapshot.
        stack: int64[requests], the number of the stack of each thing that forwards make.
        size: int64[requests], bytes of it.
        below: bool[requests], see `below_optimizer`.
    """
    modules = {one: path_of(stacks[one])[1:] for one in ascending(stack).tolist() if one != NO_STACK}
    above: dict[Path, set[int]] = defaultdict(set)
    for one, made in zip(stack[~below].tolist(), size[~below].tolist(), strict=True):
        above[modules.get(one, ())].add(made)
    shares: dict[float, int] = defaultdict(int)
    for one, made in zip(stack[below].tolist(), size[below].tolist(), strict=True):
        known = above.get(modules.get(one, ()))
        if known and made not in known:
            shares[made / max(known)] += made
    most = 2 * sum(shares.values()) > int(size[below].sum())
    return max(shares, key=lambda share: shares[share]) if most else 1.0


def _frames(stacks: StackTable, used: IntArray) -> dict[int, tuple[Line, ...]]:
    """The frames of the stacks that are used, from the outside."""
    numbers = [one for one in ascending(used).tolist() if one != NO_STACK]
    return {one: tuple(line for part in path_of(stacks[one]) for line in part) for one in numbers}


def _places(frames: tuple[Line, ...]) -> list[tuple[Place, int]]:
    return [((frames[:depth], file, name), line) for depth, (file, line, name) in enumerate(frames)]


def _is_below(frames: tuple[Line, ...], last: dict[Place, int]) -> bool:
    """Whether the outermost function in which the two part has the optimizer's line above."""
    for place, line in _places(frames):
        if place not in last:
            return False
        if line != last[place]:
            return line > last[place]
    return False
