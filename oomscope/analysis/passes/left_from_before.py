"""What is older than the work that is underway: nothing in the trace tells whether it is still needed."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER, WORKSPACE
from oomscope.analysis.labels.stack_roles import Role
from oomscope.analysis.passes.script_stacks import MAIN, MODULE
from oomscope.analysis.study import DeviceStudy
from oomscope.history import BEFORE
from oomscope.model import BoolArray
from oomscope.model.ordering import is_any


def left_from_before(study: DeviceStudy, entry: int) -> int:
    """Allocated bytes that the work underway at `entry` may not need, and that are no part of a model.

    Within a loop, what was made before the outermost one began. Else what functions made that have returned. A model,
    what is loaded for it, and workspaces are made once for all that follows; results, data and what an earlier training
    left behind may be done with.
    """
    lifetimes = study.history.lifetimes
    running = study.loops.running(entry)
    if running:
        older = lifetimes.born < study.loops.runs[running[0]].begin
    else:
        older = _by_ended_calls(study, entry)[lifetimes.stack]
    older &= lifetimes.allocated_at(entry) & (lifetimes.born > BEFORE)
    older &= ~is_any(study.categories, (PARAMETER, BUFFER, WORKSPACE))
    older &= study.roles.role[lifetimes.stack] != Role.LOAD
    return int(study.history.size[older].sum())


def made_by_other_statements(study: DeviceStudy, entry: int) -> int:
    """Allocated bytes, outside of any loop, that are of no model and that other statements made than the one underway.

    A forward may go through several statements, and its inputs are made by one before it; so may anything else be that
    nobody reads again. Only a recording tells.
    """
    last = _last_stack(study, entry)
    if last is None or study.loops.running(entry):
        return 0
    script, lifetimes = study.loops.script, study.history.lifetimes
    underway = _statement(script.paths[script.path_of[last]])
    others = np.ones(len(script.path_of) + 1, np.bool_)
    others[:-1] = [_statement(script.paths[path]) != underway for path in script.path_of.tolist()]
    found = lifetimes.allocated_at(entry) & (lifetimes.born > BEFORE) & others[lifetimes.stack]
    found &= ~is_any(study.categories, (PARAMETER, GRADIENT, OPTIMIZER_STATE, BUFFER, WORKSPACE))
    found &= study.roles.role[lifetimes.stack] != Role.LOAD
    return int(study.history.size[found].sum())


def _statement(path: tuple[int, ...]) -> tuple[int, ...]:
    """The lines of the script down to a Module's call."""
    return path[: path.index(MODULE)] if MODULE in path else path


def _by_ended_calls(study: DeviceStudy, entry: int) -> BoolArray:
    """bool[stacks + 1]: whether a function of the script made it, outside any Module's call, and is not underway."""
    script = study.loops.script
    ended = np.zeros(len(script.path_of) + 1, np.bool_)
    last = _last_stack(study, entry)
    if last is None:
        return ended
    function = script.function.tolist()
    underway = {function[place] for place in script.paths[script.path_of[last]] if place >= 0}
    for number, path in enumerate(script.path_of.tolist()):
        own = [place for place in script.paths[path] if place == MODULE or script.is_script[place]]
        ended[number] = bool(own) and MODULE not in own and function[own[-1]] not in underway
    return ended


def _last_stack(study: DeviceStudy, entry: int) -> int | None:
    """The last stack of the program's own thread up to `entry`: autograd's threads have none of it."""
    stacks = study.history.trace.stack[: entry + 1]
    mine = np.flatnonzero((stacks >= 0) & (study.loops.script.thread[stacks] == MAIN))
    return int(stacks[mine[-1]]) if len(mine) else None
