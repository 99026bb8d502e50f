"""What a forward keeps for a backward that never comes: a frozen encoder whose output is detached, an evaluation.

Its graph goes at once, when a variable is bound anew or a function returns, while no backward runs.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION, TEMPORARY
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger.draft import NEVER, SPACING
from oomscope.analysis.ledger.graphs.held import held_until
from oomscope.analysis.ledger.graphs.overlooked import SMALL_SHARE, Calls, calls_of
from oomscope.analysis.ledger.graphs.several_steps import for_several_steps
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import Path, paths
from oomscope.analysis.ledger.run import SCALAR, Run
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending

TOGETHER = 8
"""Tensors that a graph lets go of in a row, at least; a variable holds fewer."""
AT_ONCE = 0.5
"""Of what a call leaves in a pass: what goes in one row."""
LEAST_LINES = 2
"""That leave something to a graph; what a list of the program holds was made by one."""


def never_backward(run: Run) -> BoolArray:
    """bool[requests]: what a forward makes and a graph alone keeps, that no backward ever uses. Found once."""
    return run.study.once("kept for no backward", lambda: _never_backward(run))


def of_a_graph(run: Run) -> BoolArray:
    """bool[requests]: what a graph keeps, whether a backward uses that or not."""
    return run.saved | never_backward(run)


def _never_backward(run: Run) -> BoolArray:
    kept = _outlives_python(run)
    none = np.zeros(len(run.size), np.bool_)
    if not run.during(BACKWARD).any() or not kept.any():
        return none
    known = paths(run)
    rest = kept & ~let_go_in_backward(run)
    calls = _calls(run, known, [rows[kept[rows] & (run.end[rows] < NEVER)] for rows in forwards(run)], rest)
    inside = [stack for stack, path in known.items() if calls and not calls.isdisjoint(calls_of(path))]
    return (rest & np.isin(run.stack, inside)) | _earlier_rounds(run, kept, rest)


def _earlier_rounds(run: Run, kept: BoolArray, rest: BoolArray) -> BoolArray:
    """bool[requests]: the graph of a network that ran before in the same forward, as AlphaFold's does to recycle.

    Its calls are those of the round that goes backward. So it is told by when it is made: it is let go of at once in
    that forward, and of what is made meanwhile a backward uses next to nothing.
    """
    found = np.zeros(len(run.size), np.bool_)
    for rows in forwards(run):
        own = rows[kept[rows]]
        least, last = SMALL_SHARE * int(run.size[own].sum()), int(run.begin[rows[-1]])
        alone = own[rest[own] & (run.end[own] <= last + SPACING)]
        moment = _last_request(run, run.end[alone])
        for one in np.flatnonzero(np.bincount(moment) >= TOGETHER).tolist():
            graph = alone[moment == one]
            size = int(run.size[graph].sum())
            used = own[(own >= graph[0]) & (own <= graph[-1]) & ~rest[own]]
            if size > least and _of_several_lines(run, graph) and run.size[used].sum() <= SMALL_SHARE * size:
                found[graph] = True
    return found


def _outlives_python(run: Run) -> BoolArray:
    """What a forward makes that lives on when Python is done with it."""
    made = run.during(FORWARD) & (run.stack >= 0) & run.of(ACTIVATION, TEMPORARY) & (run.size > SCALAR)
    found: BoolArray = made & ~run.recording.at_once & (run.end > held_until(run) + 2 * SPACING)
    return found


def let_go_in_backward(run: Run) -> BoolArray:
    """bool[requests]: whose end comes while a backward runs: the last request before it was a backward's."""
    found: BoolArray = (run.end < NEVER) & run.during(BACKWARD)[_last_request(run, run.end)]
    return found


def _last_request(run: Run, moment: IntArray) -> IntArray:
    """The last request before each moment."""
    found: IntArray = np.maximum(np.searchsorted(run.begin, moment) - 1, 0)
    return found


def _calls(run: Run, known: dict[int, Path], passes: list[IntArray], rest: BoolArray) -> Calls:
    """The calls that keep a fair part of what a forward does, let go of at once in each pass, and by no backward.

    What the variables of a function hold goes when that returns: at another moment for each call of a layer.

    Args:
        run: the run.
        known: the paths of its stacks.
        passes: what each forward makes that outlives Python.
        rest: of which no backward lets go.
    """
    unused: Counter[object] = Counter()
    used: Counter[object] = Counter()
    together: Counter[object] = Counter()
    for rows in passes:
        for call, own in _by_call(run, known, rows).items():
            alone = own[rest[own]]
            used[call] += int(run.size[own[~rest[own]]].sum())
            unused[call] += int(run.size[alone].sum())
            together[call] += _in_one_row(run, alone)
    least = SMALL_SHARE * max((int(run.size[rows].sum()) for rows in passes), default=0)
    return {
        call
        for call, left in unused.items()
        if left > least and used[call] <= SMALL_SHARE * left and together[call] >= AT_ONCE * left
    }


def _by_call(run: Run, known: dict[int, Path], rows: IntArray) -> dict[object, IntArray]:
    """The requests of each call of a module, and of what that calls."""
    found: dict[object, list[int]] = {}
    for row, stack in zip(rows.tolist(), run.stack[rows].tolist(), strict=True):
        for call in calls_of(known[stack]):
            found.setdefault(call, []).append(row)
    return {call: np.array(own, np.int64) for call, own in found.items()}


def _in_one_row(run: Run, rows: IntArray) -> int:
    """Bytes that go between two requests, if they are as many tensors, of several lines, as of a graph.

    An evaluation makes one graph for each of its batches, nearly as large as the largest.
    """
    graphs = [0]
    moment = _last_request(run, run.end[rows])
    for one in ascending(moment).tolist():
        own = rows[moment == one]
        if len(own) >= TOGETHER and _of_several_lines(run, own):
            graphs.append(int(run.size[own].sum()))
    return sum(one for one in graphs if one >= AT_ONCE * max(graphs))


def _of_several_lines(run: Run, rows: IntArray) -> bool:
    return len(set(run.stack[rows].tolist())) >= LEAST_LINES


def evaluations(run: Run) -> list[IntArray]:
    """The graphs that evaluations keep below the optimizer, each as the requests of one batch. Found once.

    One batch ends where what the last one began with comes again, behind what that ended with.
    """
    return run.study.once("evaluations of the ledger", lambda: _evaluations(run))


def _evaluations(run: Run) -> list[IntArray]:
    kept = never_backward(run) & run.below_optimizer & ~for_several_steps(run)
    found: list[IntArray] = []
    for rows in forwards(run):
        own = rows[kept[rows]]
        if len(own):
            stacks = run.stack[own].tolist()
            begins, ended = [0], False
            for place, stack in enumerate(stacks):
                if ended and stack == stacks[0]:
                    begins.append(place)
                    ended = False
                ended = ended or stack == stacks[-1]
            found += np.split(own, begins[1:])
    return found
