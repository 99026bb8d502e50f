"""The parts of a model that has no blocks: the modules that it calls itself, each of several layers, as two towers."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import IN_A_MODEL, Block, block_of

LEAST_KEPT = 2
"""Requests that a part leaves to its backward: what leaves fewer has nothing to make again."""
LEAST_PARTS = 2
"""Of a forward: one is the model itself, which has all of it again at once."""
WORTH = 1 / 8
"""Of the recorded peak: where the parts of each forward leave less, nothing is to be had of them."""
_LAYER = re.compile(r"torch/nn/modules/(?!container|transformer)")


def parts(run: Run) -> list[Block]:
    """The parts that each forward calls, in order; empty where there is one, or they leave little to a backward."""
    known, passes = paths(run), forwards(run)
    found = []
    for rows in passes:
        calls: dict[object, list[int]] = {}
        for place, row in enumerate(rows.tolist()):
            path = known[int(run.stack[row])]
            if len(path) > IN_A_MODEL and not _LAYER.search(path[IN_A_MODEL][0][0]):
                called = module_of(path[: IN_A_MODEL + 1])
                calls.setdefault((path[:IN_A_MODEL], called), []).append(place)
        # What a line calls again, as for another batch of an evaluation, is made behind something else.
        each = [np.split(one, np.flatnonzero(np.diff(one) > 1) + 1) for one in map(np.array, calls.values())]
        found += [block_of(run, rows[places], IN_A_MODEL) for one in each for places in one]
    found.sort(key=lambda part: int(part.rows[0]))
    found = [part for part in found if len(part.inner) >= LEAST_KEPT]
    number = max(len(passes), 1)
    kept = sum(int(run.size[part.inner].sum()) for part in found) / number
    peak = int(run.study.history.curves.allocated.max(initial=0))
    return found if len(found) >= LEAST_PARTS * number and kept >= WORTH * peak else []
