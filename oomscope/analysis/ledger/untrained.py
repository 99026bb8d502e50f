"""What goes backward although nothing trains it: a network before the model that was meant to be frozen.

Its weights have gradients that no ``zero_grad`` of the optimizer reaches: the first step leaves them for good, and
later ones add theirs to them. They are the last that a backward makes, for nothing before them is trained.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import Path, module_of, paths
from oomscope.analysis.ledger.run import SCALAR, Run
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import among, ascending

LEAST_WEIGHTS = 2
"""Gradients of weights that a network leaves."""
SMALL_SHARE = 1 / 16
"""Of what a forward leaves to its backward: less is not worth it."""
MOSTLY = 0.5
"""Of the bytes of gradients that a backward leaves at most."""


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
    zeroed = [_zeroed(run, passes, number) for number in range(len(passes))]
    most = max((int(run.size[rows].sum()) for rows in zeroed), default=0)
    # Where gradients are zeroed in place, or not after each backward, only some leave any.
    calls = {
        call
        for number, rows in enumerate(zeroed)
        if len(rows) and run.size[rows].sum() >= MOSTLY * most
        for call in _calls_for_nothing(run, known, passes, number, int(run.begin[rows[-1]]))
    }
    inside = [stack for stack, path in known.items() if calls and not calls.isdisjoint(_calls_of(path))]
    found = Untrained(np.zeros(len(run.size), np.bool_), np.zeros(len(run.size), np.bool_))
    for number, rows in enumerate(passes if inside else []):
        of_calls = np.isin(run.stack[rows], inside)
        mine, others = rows[of_calls], rows[~of_calls]
        if len(mine):
            found.forward[mine] = True
            found.backward[_goes_with(run, mine, others, _backward_of(run, passes, number))] = True
    return found if found.forward.any() else None


def _zeroed(run: Run, passes: list[IntArray], number: int) -> IntArray:
    """The gradients that a backward leaves to its end and that are let go later."""
    back = _backward_of(run, passes, number)
    found: IntArray = back[run.gradients[back] & (run.end[back] > run.begin[back[-1:]].sum()) & (run.end[back] < NEVER)]
    return found


def _calls_for_nothing(run: Run, known: dict[int, Path], passes: list[IntArray], number: int, last: int) -> set[object]:
    """The calls of modules whose backward lies behind the `last` gradient that is zeroed, a moment.

    What a later backward needs, as of a generator behind that of its discriminator, waits for that one.
    """
    rows, back = passes[number], _backward_of(run, passes, number)
    following = int(run.begin[passes[number + 1][0]]) if number + 1 < len(passes) else NEVER
    made = run.size[back[run.begin[back] > last]]
    if np.count_nonzero(among(made, ascending(run.size[run.parameters])) & (made > SCALAR)) < LEAST_WEIGHTS:
        return set()
    # Of each call, what it leaves to its backward; 0 where some of that goes before.
    calls: dict[object, int] = {}
    for row in rows[run.saved[rows]].tolist():
        for call in _calls_of(known[int(run.stack[row])]):
            behind = last < int(run.end[row]) < following and calls.get(call) != 0
            calls[call] = calls.get(call, 0) + int(run.size[row]) if behind else 0
    least = SMALL_SHARE * float(run.size[rows[run.saved[rows]]].sum())
    return {call for call, left in calls.items() if left > 0 and left >= least}


def _calls_of(path: Path) -> list[object]:
    """The calls of modules that something is made in, the outermost first: where each is called, and which it is."""
    return [(path[:depth], module_of(path[: depth + 1])) for depth in range(1, len(path))]


def _backward_of(run: Run, passes: list[IntArray], number: int) -> IntArray:
    """What is made backward behind a forward and before the next one."""
    first = int(passes[number][-1])
    last = int(passes[number + 1][0]) if number + 1 < len(passes) else len(run.size)
    rows = np.arange(first + 1, last)
    found: IntArray = rows[run.during(BACKWARD)[rows]]
    return found


def _goes_with(run: Run, mine: IntArray, others: IntArray, back: IntArray) -> IntArray:
    """What of a backward is made once it has given up the last thing that the rest of the forward left to it."""
    ends = np.sort(run.end[mine[run.saved[mine]]])
    if not len(ends):
        return back[:0]
    rest = run.end[others[run.saved[others]]]
    begins = int(rest[rest < ends[len(ends) // 2]].max(initial=-1))
    found: IntArray = back[run.begin[back] > begins]
    return found
