"""The blocks of a model: modules of one kind that run one after another in a loop, told from stacks alone.

Within a call of a module, calls of its children share the frames above them. Where the first line of a child comes
again after others, the next child of its kind has begun.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.draft import SPACING
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import IntArray

LEAST_BLOCKS = 2
LEAST_REQUESTS = 3
"""Of a block: what one line makes again and again is none."""
SMALL_SHARE = 1 / 16
"""Of the largest that a block leaves: what is smaller is no output, but a statistic."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One call of a block.

    Attributes:
        rows: its requests.
        inner: those of them that its backward needs, without its output.
        end: the moment at which its forward ends.
        depth: which part of its requests' paths is its own.
    """

    rows: IntArray
    inner: IntArray
    end: int
    depth: int


def blocks(run: Run) -> list[Block]:
    """All calls of all blocks, in order; empty where the model has none."""
    found = []
    for step in range(max(run.steps, 1)):
        rows = np.flatnonzero(run.during(FORWARD) & ((run.step == step) if run.steps else True) & (run.stack >= 0))
        found += [_block(run, part, depth) for part, depth in _partition(run, rows)]
    return [block for block in found if len(block.inner)]


def _block(run: Run, rows: IntArray, depth: int) -> Block:
    end = int(run.begin[rows].max()) + SPACING - 1
    alive = rows[(run.end[rows] > end) & run.saved[rows]]
    if not len(alive):
        return Block(rows, alive, end, depth)
    large = alive[run.size[alive] >= SMALL_SHARE * run.size[alive].max()]
    output = large[np.argmax(run.begin[large])]
    return Block(rows, alive[alive != output], end, depth)


def _partition(run: Run, rows: IntArray) -> list[tuple[IntArray, int]]:
    """The requests of each call of a block with its depth: the outermost loops over children of one kind."""
    known = paths(run)
    pending = [(rows, 1)]
    found: list[tuple[IntArray, int]] = []
    while pending:
        part, depth = pending.pop(0)
        groups: dict[tuple[object, ...], list[int]] = {}
        for row in part.tolist():
            path = known[int(run.stack[row])]
            if len(path) > depth:
                groups.setdefault(path[:depth], []).append(row)
        for mine in groups.values():
            calls = _calls(mine, [known[int(run.stack[row])][depth:] for row in mine])
            if len(calls) >= LEAST_BLOCKS and len(mine) >= LEAST_BLOCKS * LEAST_REQUESTS:
                found += [(np.array(call, np.int64), depth) for call in calls]
            else:
                pending.append((np.array(mine, np.int64), depth + 1))
    return found


def _calls(rows: list[int], tails: list[tuple[object, ...]]) -> list[list[int]]:
    """`rows` cut where what came first comes again after something else."""
    first = tails[0]
    calls = [[rows[0]]]
    before = first
    for row, tail in zip(rows[1:], tails[1:], strict=True):
        if tail == first and before != first and len(calls[-1]) >= LEAST_REQUESTS:
            calls.append([])
        calls[-1].append(row)
        before = tail
    return calls
