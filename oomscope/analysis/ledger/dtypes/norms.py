"""What norms need in full precision under autocast, and what else is given what they are given."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.dtypes.own_parameters import with_own_parameters
from oomscope.analysis.ledger.dtypes.products import CONVOLUTION, is_norm, last_of_largest
from oomscope.analysis.ledger.dtypes.written_norms import written_out
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.paths import Path, module_of
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray


def needed_in_full(run: Run, rows: IntArray, known: dict[int, Path]) -> list[bool]:
    """For each of `rows`, whether what comes next needs it in its backward, in full precision.

    A workspace that is given back at once does not come between.
    """
    found, written = [False] * len(rows), written_out(run)
    lasting = np.flatnonzero(~run.recording.at_once[rows]).tolist()
    for place, after in pairwise(lasting):
        row, following = int(rows[place]), int(rows[after])
        if run.saved[row] and run.size[following] == run.size[row]:
            found[place] = bool(written[following]) or is_norm(known[int(run.stack[following])])
    return found


def activated_in_place(run: Run, rows: IntArray, known: dict[int, Path]) -> BoolArray:
    """bool[requests]: norms' results before a convolution that an activation in place has become, unseen.

    They are in full precision, as those of group norms and of norms with parameters or buffers of their own. Its
    backward needs that, beside the copy for the convolution, and makes a gradient as large last. Where nothing goes
    backward, as in an evaluation, the same modules tell that elsewhere.
    """
    found, own = np.zeros(len(run.size), np.bool_), with_own_parameters(run)
    before: list[int] = []
    edges = [0, *(np.flatnonzero(np.diff(run.stack[rows])) + 1).tolist(), len(rows)]
    for (begin, end), (following, _) in pairwise(pairwise(edges)):
        # Its statistics come behind a result.
        row = int(rows[last_of_largest(run.size[rows], begin, end)])
        row = row if own[row] else int(rows[begin])
        norm = own[row] or any(name == "group_norm" for _, _, name in known[int(run.stack[row])][-1])
        convolves = bool(CONVOLUTION.search(known[int(run.stack[rows[following]])][-1][0][0]))
        if norm and convolves:
            before.append(row)
            found[row] = _last_made_for(run, row) == run.size[row]
    modules = [known[one][1:] for one in run.stack[before].tolist()]
    activated = {module for module, row in zip(modules, before, strict=True) if found[row]}
    unused = never_backward(run)
    for module, row in zip(modules, before, strict=True):
        found[row] |= unused[row] and module in activated
    return found


def _last_made_for(run: Run, row: int) -> int:
    """Bytes of the last thing that a backward makes before it gives up what a forward made."""
    made = np.flatnonzero(run.during(BACKWARD) & (run.begin < run.end[row]))
    return int(run.size[made[-1]]) if len(made) else 0


def given_to_both(run: Run, rows: IntArray, known: dict[int, Path]) -> BoolArray:
    """bool[requests]: what goes into a call whose norm is given it first, and a convolution beside the others last.

    That has no result before it that a backward needs, so it is given what none of the others is: a shortcut.
    """
    found = np.zeros(len(run.size), np.bool_)
    changes = np.flatnonzero(np.diff(run.stack[rows]))
    firsts = np.concatenate([[0], changes + 1]) if len(rows) else rows
    linear = run.marked(Mark.LINEAR)[rows[firsts]]
    for place in np.flatnonzero(linear[2:] & linear[1:-1] & ~linear[:-2]) + 2:
        row, before, given = (int(rows[firsts[one]]) for one in (place, place - 1, place - 2))
        owner = known[int(run.stack[row])][:-1]
        if run.saved[before] or not CONVOLUTION.search(known[int(run.stack[row])][-1][0][0]) or not owner:
            continue
        if not is_norm(known[int(run.stack[given])]):
            begin = _begin_of_call(run, rows, known, int(firsts[place]), owner)
            if begin and is_norm(known[int(run.stack[rows[begin]])]):
                found[rows[begin - 1]] = True
    return found


def _begin_of_call(run: Run, rows: IntArray, known: dict[int, Path], place: int, owner: Path) -> int:
    """The place in `rows` where the call of a module begins: its lines go back to it from the call before."""
    depth, line = len(owner) - 1, owner[-1][0][1]
    while place:
        path = known[int(run.stack[rows[place - 1]])]
        within = len(path) > depth and module_of(path[: depth + 1]) == module_of(owner)
        if not within or path[depth][0][1] > line:
            break
        place, line = place - 1, path[depth][0][1]
    return place
