"""Whether a forward or a backward is the first of the run, where no loop tells."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.passes.script_stacks import MODULE
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, IntArray
from oomscope.model.ordering import ascending


def is_first_pass(study: DeviceStudy, entry: int, phase: str) -> bool:
    """Whether the model was called on one line only up to `entry`, in no loop, and nothing had failed before.

    Args:
        study: of the device.
        entry: of a request.
        phase: that made the request: of a ``forward`` no backward has been before it, of a ``backward`` no forward
            has followed it. False for any other.
    """
    history, loops = study.history, study.loops
    if study.history_kind != "full" or phase not in ("forward", "backward") or loops.runs:
        return False
    lifetimes, failed = history.lifetimes, history.trace.entries(Action.OOM)
    if np.any(failed < entry) or len(_calling_lines(study, entry)) != 1:
        return False
    forward, backward = (lifetimes.born[study.phases == one] for one in (FORWARD, BACKWARD))
    if phase == "forward":
        return not len(backward)
    return not len(backward) or not np.any(forward > backward.min())


def _calling_lines(study: DeviceStudy, entry: int) -> set[int]:
    """The script's lines, as its locations, from which a Module was called up to `entry`."""
    trace, script = study.history.trace, study.loops.script
    events: IntArray = trace.entries(Action.ALLOC, Action.OOM)
    stacks = ascending(trace.stack[events[events <= entry]])
    paths = (script.paths[number] for number in set(script.path_of[stacks[stacks >= 0]].tolist()))
    callers = (script.lines_on(path) for path in paths if MODULE in path)
    return {lines[-1] for lines in callers if lines}
