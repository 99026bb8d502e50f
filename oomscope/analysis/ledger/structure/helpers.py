"""What a program calls by the same function of its own as the blocks of its model, from other lines or other modules.

``x = self.run(layer, x)`` is written so to switch something on for whatever is run so, as making it again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import Path, has_modules, module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import Block, block_of
from oomscope.analysis.ledger.structure.call_tree import called
from oomscope.analysis.plan.requests.calls import Line
from oomscope.model import IntArray

_CONTAINER = re.compile(r"torch/nn/modules/container")


def called_alike(run: Run, found: Sequence[Block], beside: Sequence[Block] = ()) -> list[Block]:
    """The calls of modules by functions that call blocks as well, but for those with blocks in them or `beside` ones.

    Where a function calls containers, a loop over several is likelier than one container that holds a whole network, so
    each layer of the kind that the first one begins with begins another.
    """
    known = paths(run)
    modules = has_modules(run)
    callers = [known[int(run.stack[block.rows[0]])][: block.depth] for block in found]
    functions = {line for path in callers for line in (_functions(path) if modules else [path[-1][-1]])}
    inside = {row for block in (*found, *beside) for row in block.rows.tolist()}
    calls: dict[object, tuple[int, list[int]]] = {}
    for number, rows in enumerate(forwards(run) if functions else []):
        for row in rows.tolist():
            path = known[int(run.stack[row])]
            calls_it = (path[depth][-1] if not modules else _function(path, depth) for depth in range(1, len(path) - 1))
            depth = next((depth for depth, line in enumerate(calls_it, 1) if line in functions), None)
            if depth is not None:
                key = (number, path[: depth + 1], module_of(path[: depth + 2]))
                calls.setdefault(key, (depth + 1, []))[1].append(row)
    blocks = [
        block_of(run, part, depth)
        for depth, rows in calls.values()
        if inside.isdisjoint(rows)
        for call in np.split(np.array(rows), np.flatnonzero(np.diff(rows) != 1) + 1)
        for part in _of_containers(run, known, call, depth)
    ]
    return [block for block in blocks if len(block.inner)]


def _functions(path: Path) -> list[Line]:
    """The lines of functions that the modules of a path call their parts by."""
    return [line for depth in range(1, len(path)) if (line := _function(path, depth)) is not None]


def _function(path: Path, depth: int) -> Line | None:
    """The line of the function by which a module calls the next one; None where it does so itself, or torch does."""
    part = path[depth]
    return part[-1] if len(part) > 1 and not part[-1][0].startswith("torch/") else None


def _of_containers(run: Run, known: dict[int, Path], rows: IntArray, depth: int) -> list[IntArray]:
    """What is called in a row, as the containers that it is, where it is of containers."""
    row_paths = [known[stack] for stack in run.stack[rows].tolist()]
    if not _CONTAINER.match(row_paths[0][depth][0][0]):
        return [rows]
    layers = [called(path, depth + 1) for path in row_paths]
    anew = [layer == layers[0] for layer in layers]
    begins = np.array(anew) & run.marked(Mark.LINEAR)[rows] & ~run.recording.at_once[rows]
    return np.split(rows, np.flatnonzero(begins[1:]) + 1)
