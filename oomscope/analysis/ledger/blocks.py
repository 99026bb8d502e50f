"""The blocks of a model: modules of one kind that run one after another in a loop, told from stacks alone.

Within a call of a module, calls of its children share the frames above them. Where the first line of a child comes
again after others, the next child of its kind has begun.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.draft import SPACING
from oomscope.analysis.ledger.paths import Path, paths
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


def blocks(run: Run) -> tuple[Block, ...]:
    """All calls of all blocks, in order; empty where the model has none. Found once."""
    return run.study.once("blocks of the ledger", lambda: _blocks(run))


def _blocks(run: Run) -> tuple[Block, ...]:
    found = []
    numbers = _Numbers(paths(run))
    for rows in forwards(run):
        found += [_block(run, part, depth) for part, depth in _partition(run, rows, numbers)]
    return tuple(block for block in found if len(block.inner))


def forwards(run: Run) -> list[IntArray]:
    """The framed requests of the forward of each step; all of them where no steps are known."""
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0))
    parts: list[IntArray] = np.split(rows, np.flatnonzero(np.diff(run.step[rows])) + 1)
    return [part for part in parts if len(part)]


class _Numbers:
    """Beginnings and ends of paths as numbers, so that many requests are compared quickly."""

    def __init__(self, known: dict[int, Path]) -> None:
        ids: dict[object, int] = {}
        self.head = {s: [ids.setdefault(p[:d], len(ids)) for d in range(len(p) + 1)] for s, p in known.items()}
        self.tail = {s: [ids.setdefault(p[d:], len(ids)) for d in range(len(p) + 1)] for s, p in known.items()}


def _block(run: Run, rows: IntArray, depth: int) -> Block:
    end = int(run.begin[rows].max()) + SPACING - 1
    alive = rows[(run.end[rows] > end) & run.saved[rows]]
    if not len(alive):
        return Block(rows, alive, end, depth)
    large = alive[run.size[alive] >= SMALL_SHARE * run.size[alive].max()]
    output = large[np.argmax(run.begin[large])]
    return Block(rows, alive[alive != output], end, depth)


def _partition(run: Run, rows: IntArray, numbers: _Numbers) -> list[tuple[IntArray, int]]:
    """The requests of each call of a block with its depth: the outermost loops over children of one kind."""
    pending = [(rows, 1)]
    found: list[tuple[IntArray, int]] = []
    while pending:
        part, depth = pending.pop(0)
        groups: dict[int, list[tuple[int, int]]] = {}
        for row, stack in zip(part.tolist(), run.stack[part].tolist(), strict=True):
            heads = numbers.head[stack]
            if len(heads) > depth + 1:
                groups.setdefault(heads[depth], []).append((row, numbers.tail[stack][depth]))
        for group in groups.values():
            mine, tails = [row for row, _ in group], [tail for _, tail in group]
            calls = _calls(mine, tails)
            if len(calls) >= LEAST_BLOCKS and len(mine) >= LEAST_BLOCKS * LEAST_REQUESTS:
                found += [(np.array(call, np.int64), depth) for call in calls]
            else:
                pending.append((np.array(mine, np.int64), depth + 1))
    return found


def _calls(rows: list[int], tails: list[int]) -> list[list[int]]:
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
