"""Gradients that keep a graph, as ``backward(create_graph=True)`` leaves them, told as one holder a model.

Each keeps parts of what the others keep, so that none of them alone seems to keep it; one call sets them all to None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile

from oomscope.recording.census.holder_rows import ANY_STEPS, HolderRow
from oomscope.recording.census.holding import Holding

_STEP = re.compile(r"(?=[.\[{])")
_GRADIENT = ".grad"


def join_gradients(holding: Holding, rows: Iterable[HolderRow], gradients: Iterable[int]) -> None:
    """Tell rows of such gradients by what is common to all that one variable reaches: ``main: model.*.grad``.

    Args:
        holding: who refers to whom.
        rows: of all holders.
        gradients: the nodes of the gradients that keep a graph.
    """
    groups: dict[str, dict[int, str]] = {}
    for node in gradients:
        words = holding.label(node)
        if words is not None and words.endswith(_GRADIENT):
            groups.setdefault(_STEP.split(words)[0], {})[node] = words
    for group in groups.values():
        words = _common(list(group.values()))
        for row in rows:
            if not row.members.isdisjoint(group):
                row.holder = words
                row.members |= set(group)


def _common(ways: list[str]) -> str:
    if len(ways) == 1:
        return ways[0]
    steps = [_STEP.split(way.removesuffix(_GRADIENT)) for way in ways]
    shared = takewhile(lambda alike: len(set(alike)) == 1, zip(*steps, strict=False))
    return "".join(step for step, *_ in shared) + ANY_STEPS + _GRADIENT
