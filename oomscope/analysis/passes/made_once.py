"""What belongs to parameters that were there before the loop: their gradients and their optimizer's state.

Each parameter has one gradient and so much state, however many passes follow. Members of a population get theirs in
turn, one a pass; L-BFGS fills a history of as many steps as it was told to keep. That rises for a while and is no
growth. Parameters that are added pass by pass are another thing: what comes with them has no bound.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import GRADIENT, OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.passes.candidates import kept_gradients
from oomscope.analysis.passes.loop_that_matters import pass_begins
from oomscope.analysis.study import DeviceStudy
from oomscope.model import BoolArray
from oomscope.model.ordering import is_any

MOST_STATE = 3.0
"""Of the bytes of the parameters: no optimizer of torch keeps more of each than two copies, or three with `amsgrad`."""
MOST_ADDED = 0.05
"""Of what comes with parameters: so many bytes of new ones say that they are added pass by pass."""
_FILLS_A_HISTORY = "torch/optim/lbfgs.py"


def made_once(study: DeviceStudy, entry: int) -> BoolArray:
    """bool[lifetimes]: gradients and optimizer state of parameters older than the passes counted at `entry`."""
    return np.asarray(study.once(("made once", entry), lambda: _made_once(study, entry)))


def _made_once(study: DeviceStudy, entry: int) -> BoolArray:
    history, categories = study.history, study.categories
    lifetimes, live = history.lifetimes, history.lifetimes.allocated_at(entry)
    begins = pass_begins(study, entry)
    later = live & (lifetimes.born >= (begins[0] if len(begins) else 0))
    parameters, state = categories == PARAMETER, categories == OPTIMIZER_STATE
    history_of_steps = state & fills_a_history(study)
    belongs = is_any(categories, (GRADIENT, OPTIMIZER_STATE)) & ~kept_gradients(study, entry)

    def bytes_of(rows: BoolArray) -> int:
        return int(history.size[rows].sum())

    bounded = bytes_of(live & state & ~history_of_steps) <= MOST_STATE * bytes_of(live & parameters)
    if not bounded or bytes_of(later & parameters) > MOST_ADDED * bytes_of(later & belongs):
        return np.asarray(history_of_steps)
    return np.asarray(belongs | history_of_steps)


def fills_a_history(study: DeviceStudy) -> BoolArray:
    """bool[lifetimes]: allocations that L-BFGS itself makes, not what it calls."""
    stacks = study.snapshot.stacks
    wanted = np.array([one.filename.replace("\\", "/").endswith(_FILLS_A_HISTORY) for one in stacks.frames], np.bool_)
    return np.asarray(stacks.holding(wanted)[study.history.lifetimes.stack])
