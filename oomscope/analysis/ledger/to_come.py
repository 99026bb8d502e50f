"""What a run that failed would still have asked for: a remedy is enough only if that fits as well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oomscope.allocator.limits import Limit
from oomscope.allocator.replay import Replay
from oomscope.analysis.labels.kinds import ACTIVATION
from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OPTIMIZER
from oomscope.analysis.ledger.draft import SPACING
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.passes.growth import find_growth
from oomscope.frozen import frozen
from oomscope.model import IntArray

STATES = 2
"""Of each trained parameter, where the optimizer has made none yet: Adam's."""
SAME_SHARE = 0.9
"""Of the requests of a step that failed: so many must be those of an earlier one for it to tell how it goes on."""


@frozen
class Outlook:
    """What a run that failed still had before it.

    Attributes:
        failed: whether a request failed.
        grows: whether memory grows from pass to pass, so that what saves some only delays the failure.
        rest: bytes beyond those at the failure that the rest of the step would have needed at once; None where nothing
            tells.
        states: bytes of optimizer state that were still to be made.
        is_asked: whether another limit is asked for than the recorded one.
    """

    failed: bool
    grows: bool
    rest: int | None
    states: int = 0
    is_asked: bool = False

    @property
    def to_come(self) -> int | None:
        """All that was to come."""
        return None if self.rest is None else self.rest + self.states


def outlook(run: Run) -> Outlook:
    """What is before a run."""
    if not run.draft.tried.any():
        return Outlook(False, False, 0)
    grows = bool(find_growth(run.study, run.study.history.entries - 1))
    return Outlook(True, grows, *_to_come(run))


def less(limit: Limit, spare: int) -> Limit:
    """`limit` with so many bytes kept free."""
    return Limit(
        cap=None if limit.cap is None else max(limit.cap - spare, 0),
        capacity=None if limit.capacity is None else max(limit.capacity - spare, 0),
        device_total=limit.device_total,
    )


def enough(outlook: Outlook, replay: Callable[[Limit], Replay], limit: Limit, spare: int) -> bool | None:
    """Whether a remedy alone is enough: every request is served, and what is to come has room as well.

    Args:
        outlook: of the run.
        replay: the run that follows the remedy, under a limit.
        limit: what was recorded.
        spare: bytes to keep free for what the prediction may be off by.
    """
    if not (outlook.failed or outlook.is_asked) or limit.bytes is None:
        return None
    if outlook.grows or not replay(limit).survived:
        return False
    if outlook.to_come is None:
        return None
    return replay(less(limit, spare + outlook.to_come)).survived or None


def _to_come(run: Run) -> tuple[int | None, int]:
    """What the rest of the step would have needed beyond what was there, None where nothing tells; and states to come.

    A failure in a forward is compared with an earlier step of the same requests, whose rise from there on is taken in
    proportion. After a backward has begun, gradients are to come; before the optimizer's first step, its state.
    """
    failed = np.flatnonzero(run.draft.tried)
    if not len(failed):
        return 0, 0
    last = int(failed[-1])
    phase = _phase_of(run, last)
    states = 0 if run.states.any() or not run.trains else STATES * int(run.trained.sum())
    if phase == OPTIMIZER:
        missing = STATES * int(run.trained.sum()) - int(run.size[run.states & (run.step == run.step[last])].sum())
        return 0, (max(missing, 0) if run.steps <= 1 else 0)
    if phase == BACKWARD:
        there = int(run.size[run.gradients & (run.step == run.step[last])].sum())
        return max(int(run.trained.sum()) - there, 0), states
    return _rise(run, last), states


def _phase_of(run: Run, request: int) -> int:
    """The phase of what was made last before a request that failed."""
    before = np.flatnonzero((run.step == run.step[request]) & (np.arange(len(run.size)) < request))
    inside = before[np.isin(run.phase[before], (FORWARD, BACKWARD, OPTIMIZER))]
    return int(run.phase[inside[-1]]) if len(inside) else FORWARD


def _rise(run: Run, request: int) -> int | None:
    """By how much an earlier step of the same requests rose from the same place on, in proportion."""
    step = int(run.step[request])
    mine = np.flatnonzero((run.step == step) & (np.arange(len(run.size)) <= request))
    for earlier in range(step - 1, -1, -1):
        theirs = run.rows_of_step(earlier)
        count = min(len(mine), len(theirs))
        if len(theirs) < len(mine) or count < 2:
            continue
        same = run.stack[mine[:count]] == run.stack[theirs[:count]]
        if same.mean() >= SAME_SHARE and theirs[-1] < mine[0]:
            return _in_proportion(run, mine, theirs)
    return None


def _in_proportion(run: Run, mine: IntArray, theirs: IntArray) -> int:
    curve = run.study.history.curves.allocated
    entry = run.draft.program.entry
    here = int(entry[int(run.begin[theirs[len(mine) - 1]]) // SPACING])
    end = int(entry[int(run.begin[theirs[-1]]) // SPACING])
    rise = int(curve[here : end + 1].max(initial=0)) - int(curve[here])
    part = run.category[mine] == ACTIVATION
    ratio = run.size[mine[part]].sum() / max(run.size[theirs[: len(mine)][part]].sum(), 1)
    return max(round(rise * float(ratio)), 0)
