"""What goes backward although nothing trains it, as a network before the model that was meant to be frozen.

Which calls of modules these are, `overlooked` tells by the gradients of their weights.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.graphs.overlooked import calls_for_nothing, calls_of, zeroed
from oomscope.analysis.ledger.passes import backward_of, forwards
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import SCALAR, Run
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray


@frozen(eq=False)
class Untrained:
    """What could run without a graph.

    Attributes:
        forward: bool[requests], what it makes forward.
        backward: bool[requests], what goes with its backward, gradients of its weights too.
    """

    forward: BoolArray
    backward: BoolArray


def untrained(run: Run) -> Untrained | None:
    """The part of a run that goes backward for nothing; None where there is none, or nothing tells."""
    return run.study.once("untrained part of the ledger", lambda: _untrained(run))


def _untrained(run: Run) -> Untrained | None:
    known, passes = paths(run), forwards(run)
    calls = calls_for_nothing(run, known, passes)
    inside = [stack for stack, path in known.items() if calls and not calls.isdisjoint(calls_of(path))]
    found = Untrained(np.zeros(len(run.size), np.bool_), np.zeros(len(run.size), np.bool_))
    for number, rows in enumerate(passes if inside else []):
        of_calls = np.isin(run.stack[rows], inside)
        of_calls |= _beside(run, rows, of_calls, zeroed(run, passes, number))
        mine, others = rows[of_calls], rows[~of_calls]
        if len(mine):
            found.forward[mine] = True
            found.backward[_goes_with(run, mine, others, backward_of(run, passes, number))] = True
    return found if found.forward.any() else None


def _beside(run: Run, rows: IntArray, of_calls: BoolArray, wanted: IntArray) -> BoolArray:
    """bool[rows]: what a network before the model makes outside of the calls that are known of it.

    A function of its own may run it, such as ``encode``. If all gradients that are `wanted` are made before its
    backward begins, that is what this gives up, of what was made before anything of the model behind.
    """
    kept = rows[of_calls & run.saved[rows]]
    last = int(run.begin[wanted[run.size[wanted] > SCALAR]].max(initial=-1))
    if not len(kept) or last < 0 or last > run.end[kept].min():
        return np.zeros(len(rows), np.bool_)
    late = run.saved[rows] & (run.end[rows] > last)
    behind = rows[run.saved[rows] & ~late & (rows > kept[-1])]
    return np.asarray(late & (rows < behind[0])) if len(behind) else late


def _goes_with(run: Run, mine: IntArray, others: IntArray, back: IntArray) -> IntArray:
    """What of a backward is made between the last thing of the rest that it gives up before, and the first behind.

    What is still there when the rest has begun is the rest's own, but for gradients of weights.
    """
    ends = np.sort(run.end[mine[run.saved[mine]]])
    if not len(ends):
        return back[:0]
    rest = run.end[others[run.saved[others]]]
    middle = ends[len(ends) // 2]
    begins = int(rest[rest < middle].max(initial=-1))
    behind = int(rest[(rest > middle) & (rest <= run.begin[back[-1]])].min(initial=NEVER)) if len(back) else NEVER
    rows = back[(run.begin[back] > begins) & (run.begin[back] < behind)]
    found: IntArray = rows[(run.end[rows] <= behind) | run.gradients[rows]] if behind < NEVER else rows
    return found
