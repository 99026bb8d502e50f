"""Activations in host memory between forward and backward."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import INPUT
from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.draft import AT_ONCE, NEVER, SPACING, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.graphs import double_backward
from oomscope.analysis.ledger.graphs.held import held_until
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.graphs.several_steps import for_several_steps
from oomscope.analysis.ledger.paths import has_modules, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.growth.reductions import made_to_add_up
from oomscope.model import BoolArray, IntArray

SLUG = "offload_activations"
LEAST = 4096
"""Bytes; what is smaller is not worth a copy."""
SHARE = 16
"""Times as large as the gradient of a function may be what it needs."""
LONGEST = 8
"""Recorded steps that most functions take to go backward."""
AHEAD = 3
"""Recorded steps by which a copy is back, at the latest, before it is used."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """What is saved goes when Python is done with it, and is back while the function that needs it goes backward.

    What outlives its backward is held by a variable; that stays. What no backward uses does not come back; that of an
    evaluation that calls the model itself stays as it is, and so does what was made before the steps that use it.
    """
    if not run.trains:
        return None
    derived = double_backward.derived(run)
    for_nothing = never_backward(run)
    rows = np.flatnonzero((run.saved | derived) & (run.size >= LEAST) & ~for_nothing)
    rows = rows[_given_up_by_backward(run, rows)]
    if not len(rows):
        return None
    held = np.where(derived, run.begin + AT_ONCE * SPACING, held_until(run))
    ends = np.minimum(held[rows], run.end[rows])
    unused = np.flatnonzero(for_nothing & ~_evaluated_elsewhere(run) & ~for_several_steps(run))
    draft = run.draft.lasting(unused, end=held_until(run)[unused]).lasting(rows, end=ends)
    late = np.maximum(run.end[rows] - AHEAD * SPACING, ends + 1)
    begins = np.maximum(_function_begins(run, run.end[rows]), _gradient_comes(run, rows))
    early = np.maximum(np.minimum(begins, late), ends + 1)
    gone = _before_sums(run, run.end[rows])
    likely = draft.added(run.size[rows], early, gone, rows)
    others = (draft.added(run.size[rows], late, run.end[rows], rows), _with_inputs(run, likely))
    return Edited(likely, others, doubt=0.15)


def _with_inputs(run: Run, draft: Draft) -> Draft:
    """`draft` in which a backward finds copies of its inputs beside them, which their variables hold."""
    begins = np.array([run.first_of(step, BACKWARD) for step in range(run.steps)] + [NEVER], np.int64)
    rows = np.flatnonzero(run.of(INPUT) & (run.size >= LEAST) & (run.end > begins[run.step]))
    return draft.added(run.size[rows], begins[run.step[rows]], run.end[rows], rows)


def _evaluated_elsewhere(run: Run) -> BoolArray:
    """bool[requests]: what runs below the optimizer where other functions call the model than in training, or lines.

    What is switched on around the forward of a step is switched on in a function that both call, at most.
    """
    known = paths(run)
    callers = {stack: (path[0][-1], *(name for *_, name in path[0])) for stack, path in known.items()}
    in_training = set(run.stack[run.saved & ~run.below_optimizer].tolist())
    if has_modules(run):
        trained = {callers[stack] for stack, path in known.items() if stack in in_training and len(path) > 1}
        elsewhere = [stack for stack, caller in callers.items() if caller not in trained]
    else:
        functions = {stack: {part[0][2] for part in path} for stack, path in known.items()}
        own = {name for stack, names in functions.items() if stack in in_training for name in names}
        elsewhere = [stack for stack, names in functions.items() if not names <= own]
    found: BoolArray = run.below_optimizer & np.isin(run.stack, elsewhere)
    return found


def _given_up_by_backward(run: Run, rows: IntArray) -> BoolArray:
    """bool[rows]: whose end is in the backward of their step."""
    found: BoolArray = run.end[rows] <= run.last_of_own_step(BACKWARD)[rows] + AHEAD * SPACING
    return found


def _function_begins(run: Run, ends: IntArray) -> IntArray:
    """For each end of what a function's backward needs, when that backward begins: where the one before it was done.

    All that one function needs is given up in a row, and nothing is made between.
    """
    moments = np.unique(ends)
    made = np.searchsorted(np.sort(run.begin[run.during(BACKWARD)]), moments)
    first = np.append(True, np.diff(made) > 0)
    before = np.append(0, moments[:-1])[first]
    found: IntArray = before[np.cumsum(first) - 1][np.searchsorted(moments, ends)] + 1
    return found


def _gradient_comes(run: Run, rows: IntArray) -> IntArray:
    """The moment from which a function that needs each of `rows` can go backward: its gradient is there.

    That goes with what the function needs, and is the last large thing to be made of what goes then but for workspaces.
    """
    gradients = np.flatnonzero(run.during(BACKWARD) & ~run.recording.at_once & (run.end < NEVER))
    gradients = gradients[np.argsort(run.end[gradients], kind="stable")]
    ends = run.end[gradients]
    first = np.searchsorted(ends, run.end[rows] - LONGEST * SPACING)
    last = np.searchsorted(ends, run.end[rows] + AHEAD * SPACING, side="right")
    found = run.end[rows] - LONGEST * SPACING
    for place, (row, begin, end) in enumerate(zip(rows.tolist(), first.tolist(), last.tolist(), strict=True)):
        large = gradients[begin:end][SHARE * run.size[gradients[begin:end]] >= run.size[row]]
        if len(large):
            found[place] = min(int(found[place]), int(run.begin[large].max()) + 1)
    return found


def _before_sums(run: Run, ends: IntArray) -> IntArray:
    """`ends`, but where a reduction comes before one, its beginning: a bias's gradient is added up behind a function.

    A copy goes when its function is done; what was recorded, when the sum is there as well.
    """
    sums = np.flatnonzero(made_to_add_up(run.recording.program) & run.during(BACKWARD))
    if not len(sums):
        return ends
    near = sums[np.maximum(np.searchsorted(run.begin[sums], ends) - 1, 0)]
    behind = (run.begin[near] < ends) & (ends - run.end[near] <= AHEAD * SPACING)
    found: IntArray = np.where(behind, run.begin[near], ends)
    return found
