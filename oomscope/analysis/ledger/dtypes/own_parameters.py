"""What modules compute with parameters of their own under autocast, as an activation with a slope of each channel.

``x + torch.sin(x * torch.exp(self.alpha)) ** 2``: autocast leaves parameters in float32, to which torch promotes what
is combined with them. What such a module makes of a parameter alone is as large as that, and is made first.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from oomscope.analysis.labels.kinds import BUFFER
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray

LARGEST = 64 << 10
"""Bytes of a parameter with a number for each channel."""
LARGER = 16
"""Times as large are activations at least."""
_OF_TORCH = "torch/"


def with_own_parameters(run: Run) -> BoolArray:
    """bool[requests]: what modules without layers make in a forward, once they have made something of a parameter."""
    found, known = np.zeros(len(run.size), np.bool_), paths(run)
    outer = {(path[:depth], module_of(path[: depth + 1])) for path in known.values() for depth in range(len(path) - 1)}
    vectors = set(run.size[(run.parameters | run.of(BUFFER)) & (run.size <= LARGEST)].tolist())
    for rows in forwards(run):
        owners = [(known[one][:-1], module_of(known[one])) for one in run.stack[rows].tolist()]
        for owner, pairs in groupby(zip(rows.tolist(), owners, strict=True), lambda pair: pair[1]):
            own = np.array([row for row, _ in pairs], np.int64)
            small = np.flatnonzero([size in vectors for size in run.size[own].tolist()])
            is_layer = bool(run.marked(Mark.LINEAR)[own].any())
            inner = owner[0] and owner not in outer and not _file_of(owner[1]).startswith(_OF_TORCH)
            if inner and len(small) and not is_layer:
                later = own[small[0] :]
                found[later[run.size[later] >= LARGER * run.size[own[small[0]]]]] = True
    return found


def _file_of(module: object) -> str:
    assert isinstance(module, tuple), "see `module_of`"
    return str(module[-1][0])
