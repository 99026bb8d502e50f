"""State, gradients and parameters spread over ranks."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import NEVER, SPACING, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import blocks

GATHERED = 2
"""Blocks whose parameters are there at once: the one that runs, and the one that is fetched."""
BUCKET = 25 << 20
"""Bytes of gradients that are reduced at once, as DDP's default has it."""


def sharded(run: Run, ranks: int, *, gradients: bool, parameters: bool) -> Edited | None:
    """The run on one of `ranks`; None where it communicates already, or does not train."""
    if ranks < 2 or not run.trains or run.marked(Mark.COMMUNICATION).any() or not run.parameters.any():
        return None
    draft = run.draft.scaled(1 / ranks, run.states | run.optimizer_temporaries)
    if gradients:
        draft = _reduced(run, draft, ranks)
    bucket = _through_steps(run, draft, min(BUCKET, int(run.trained.sum())))
    if not parameters:
        return Edited(bucket, (draft,), doubt=0.05)
    draft = draft.scaled(1 / ranks, run.parameters)
    once, twice = (_through_steps(run, draft, count * _largest_unit(run)) for count in (1, GATHERED))
    return Edited(twice, (once,), doubt=0.06)


def _reduced(run: Run, draft: Draft, ranks: int) -> Draft:
    """Gradients that are whole for a moment only."""
    rows = np.flatnonzero(run.gradients & run.during(BACKWARD))
    chosen = np.zeros(len(run.size), np.bool_)
    chosen[rows] = True
    ends = np.minimum(run.begin[rows] + 2 * SPACING, run.end[rows])
    return draft.scaled(1 / ranks, chosen).added(run.size[rows], run.begin[rows] + 1, ends, rows)


def _through_steps(run: Run, draft: Draft, size: int) -> Draft:
    """`draft` with so many bytes more in every step, until its backward ends."""
    begins = np.array([run.step_begins(step) for step in range(run.steps)], np.int64)
    ends = np.array([run.last_of(step, BACKWARD) for step in range(run.steps)], np.int64)
    whole = (begins < NEVER) & (ends > begins)
    return draft.added(np.full(int(whole.sum()), size, np.int64), begins[whole] - 1, ends[whole])


def _largest_unit(run: Run) -> int:
    """Bytes of the parameters that are gathered together: an equal share of each block, or the largest one alone."""
    calls = len(blocks(run)) // max(run.steps, 1)
    share = int(run.trained.sum()) // max(calls, 1)
    return max(share, int(run.trained.max(initial=0))) if calls > 1 else int(run.trained.sum())
