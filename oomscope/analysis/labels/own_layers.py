"""Layers that a program writes itself, by ``F.linear`` or ``F.conv2d``, which have no frames of their own.

Where a program has none of torch's: what such a line makes is larger than what was made before in one layer and smaller
in another, as in the two of an MLP; an activation leaves it as large as it is. A line beside it, as without a bias, is
one of a layer too if it is the first to multiply matrices, which takes cuBLAS's workspace.

Anywhere: a line of a function that has just made something as large as a weight, in each of its calls as another one.
So does a layer that standardizes its weight, or multiplies it with a gain, before it uses it; most weights have one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from oomscope.analysis.labels.kinds import PARAMETER, WORKSPACE
from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.study import DeviceStudy
from oomscope.model import BoolArray, FrameKind, IntArray, StackTable, frame_kind
from oomscope.model.ordering import among, ascending

LEAST = 1 << 20
"""Bytes of what a layer makes."""
LARGER, SMALLER = 1.5, 1 / 1.5
"""What a layer makes, in parts of what was made before it: at least, or at most."""
BESIDE = 3
"""Lines between two of one function."""
VECTOR = 64 << 10
"""Bytes up to which a parameter may be a vector, by which norms scale what they make."""
LEAST_WEIGHTS, MOSTLY = 3, 0.5
"""Sizes of weights of which one line makes layers, and what part of all sizes that is: fewer may be chance."""
_CONSTRUCTORS = {"__init__"}

Place = tuple[str, int, str]
"""File, line and function."""


def marks(study: DeviceStudy) -> IntArray:
    """int64[stacks + 1], `Mark` bits: those of `study.roles`, with `Mark.LINEAR` for layers of the program's own."""
    return study.once("marks with own layers", lambda: _marks(study))


def found(study: DeviceStudy) -> BoolArray:
    """bool[stacks + 1]: those of layers that the program writes itself."""
    return np.asarray((marks(study) & ~study.roles.mark & int(Mark.LINEAR)) != 0)


def _marks(study: DeviceStudy) -> IntArray:
    known, lifetimes = study.roles.mark, study.history.lifetimes
    forward = (study.phases == FORWARD) & (lifetimes.stack >= 0)
    order = np.argsort(lifetimes.born, kind="stable")
    rows = order[forward[order]]
    is_workspace = study.categories[rows] == WORKSPACE
    stack, size = lifetimes.stack[rows].astype(np.int64), study.history.size[rows]
    weights = ascending(study.history.size[(study.categories == PARAMETER) & (study.history.size > VECTOR)])
    stacks = study.snapshot.stacks
    found = _by_their_weights(stacks, stack[~is_workspace], size[~is_workspace], weights)
    if not ((known[lifetimes.stack] & int(Mark.LINEAR)) != 0)[forward].any():
        found |= _own_layers(stacks, stack, size, is_workspace)
    return np.where(found, known | int(Mark.LINEAR), known) if found.any() else known


def _by_their_weights(stacks: StackTable, stack: IntArray, size: IntArray, weights: IntArray) -> BoolArray:
    """bool[stacks + 1]: those whose innermost line comes right behind one that makes what is as large as a weight.

    Args:
        stacks: of the snapshot.
        stack: the number of the stack of each allocation of a forward but workspaces, in order.
        size: bytes of each.
        weights: bytes of the parameters, ascending, each once.
    """
    place = {one: _innermost(stacks, one) for one in ascending(stack).tolist()}
    line = _numbered(place, len(stacks))
    function = _numbered({one: where and where[::2] for one, where in place.items()}, len(stacks))
    before, here = stack[:-1], stack[1:]
    is_weight, counts = among(size, weights), (line[here] >= 0) & (here != before)
    prepared = counts & (function[before] == function[here]) & is_weight[:-1] & ~is_weight[1:]
    lines, many = int(line.max(initial=-1)) + 1, max(len(weights), 1)
    # One number for a line and a weight: `np.unique` of pairs loads a part of numpy that a summary does without.
    pairs = ascending(line[here[prepared]] * many + np.searchsorted(weights, size[:-1][prepared])) // many
    sizes, often = np.bincount(pairs, minlength=lines), np.bincount(line[here[counts]], minlength=lines)
    mostly = 2 * np.bincount(line[here[prepared]], minlength=lines) > often
    found = np.append(mostly & (sizes >= max(LEAST_WEIGHTS, MOSTLY * len(weights))), False)
    return np.asarray(found[line])


def _numbered(place: Mapping[int, object], stacks: int) -> IntArray:
    """int64[stacks + 1]: the number of the place of each stack; -1 where that is None, or there is no stack."""
    numbers = {where: number for number, where in enumerate(dict.fromkeys(filter(None, place.values())))}
    return np.array([numbers.get(place.get(one), -1) for one in range(stacks)] + [-1], np.int64)


def _own_layers(stacks: StackTable, stack: IntArray, size: IntArray, is_workspace: BoolArray) -> BoolArray:
    """bool[stacks + 1]: those whose innermost line is one of a linear layer.

    Args:
        stacks: of the snapshot.
        stack: the number of the stack of each allocation of a forward, in order.
        size: bytes of each.
        is_workspace: which are workspaces of kernels.
    """
    place = {one: _innermost(stacks, one) for one in ascending(stack).tolist()}
    large = ~is_workspace & (size >= LEAST)
    found = _widen_and_narrow([place[one] for one in stack[large].tolist()], stack[large], size[large])
    multiply = (place[one] for one in ascending(stack[is_workspace]).tolist())
    found |= {line for line in multiply if line is not None and any(_are_beside(line, other) for other in found)}
    return np.array([place.get(one) in found for one in range(len(stacks))] + [False], np.bool_)


def _innermost(stacks: StackTable, stack: int) -> Place | None:
    """The innermost line in Python, where that is one of the program's own; None where it is torch's."""
    frame = next((one for one in stacks[stack] if frame_kind(one.filename) is not FrameKind.CPP), None)
    if frame is None or frame_kind(frame.filename) is FrameKind.TORCH or frame.name in _CONSTRUCTORS:
        return None
    return frame.filename, frame.line, frame.name


def _widen_and_narrow(lines: list[Place | None], stack: IntArray, size: IntArray) -> set[Place]:
    """Lines that make one thing a call, larger than what was made before in some calls and smaller in others."""
    ratios: dict[Place, set[float]] = defaultdict(set)
    several: Counter[Place] = Counter()
    grows, again = (size[1:] / size[:-1]).tolist(), (stack[1:] == stack[:-1]).tolist()
    for line, ratio, is_again in zip(lines[1:], grows, again, strict=True):
        if line is not None:
            ratios[line].add(ratio)
            several[line] += is_again
    return {line for line, own in ratios.items() if max(own) > LARGER and min(own) < SMALLER and not several[line]}


def _are_beside(one: Place, other: Place) -> bool:
    return one[::2] == other[::2] and abs(one[1] - other[1]) <= BESIDE
