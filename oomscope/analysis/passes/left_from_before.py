"""What is older than the work that is underway: nothing in the trace tells whether it is still needed."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER, WORKSPACE
from oomscope.analysis.labels.stack_roles import Role
from oomscope.analysis.passes.script_stacks import MAIN, MODULE
from oomscope.analysis.study import DeviceStudy
from oomscope.history import BEFORE
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending, is_any

OUTERMOST = 2
"""Lines, from the script's own on, that are its statements: of the module and of its main function."""


def left_from_before(study: DeviceStudy, entry: int) -> int:
    """Bytes of `rows_from_before`."""
    return int(study.history.size[rows_from_before(study, entry)].sum())


def rows_from_before(study: DeviceStudy, entry: int) -> BoolArray:
    """bool[lifetimes]: what the work underway at `entry` may not need, and that is no part of a model.

    Within a loop, what was made before the outermost one began. Else what functions made that have returned. A model,
    what is loaded for it, and workspaces are made once for all that follows; results, data and what an earlier training
    left behind may be done with.
    """
    running = study.loops.running(entry)
    if running:
        older = study.history.lifetimes.born < study.loops.runs[running[0]].begin
    else:
        older = (ended_function(study, entry) >= 0)[study.history.lifetimes.stack]
    return np.asarray(older & may_be_left(study, entry))


def may_be_left(study: DeviceStudy, entry: int) -> BoolArray:
    """bool[lifetimes]: what is allocated, was made during the recording, and is not made once for all that follows."""
    lifetimes = study.history.lifetimes
    found = lifetimes.allocated_at(entry) & (lifetimes.born > BEFORE)
    found &= ~is_any(study.categories, (PARAMETER, BUFFER, WORKSPACE))
    return np.asarray(found & (study.roles.role[lifetimes.stack] != Role.LOAD))


def made_by_other_statements(study: DeviceStudy, entry: int, *, in_forward: bool) -> int:
    """Bytes of `rows_of_other_statements`."""
    return int(study.history.size[rows_of_other_statements(study, entry, in_forward=in_forward)].sum())


def rows_of_other_statements(study: DeviceStudy, entry: int, *, in_forward: bool) -> BoolArray:
    """bool[lifetimes]: what is of no model and other statements made than the one underway, outside of any loop.

    A forward may go through several statements, and its inputs are made by one before it; so may anything else be that
    nobody reads again. Only a recording tells. A backward needs what other statements of its own function made before
    it: outside of a forward only those of the functions around it count.
    """
    last = last_stack(study, entry)
    if last is None or study.loops.running(entry):
        return np.zeros(len(study.history.lifetimes), np.bool_)
    script, lifetimes = study.loops.script, study.history.lifetimes
    lines = [_statement(path) if in_forward else script.lines_on(path)[:-1] for path in script.paths]
    underway = lines[script.path_of[last]]
    others = np.ones(len(script.path_of) + 1, np.bool_)
    others[:-1] = [lines[path] != underway for path in script.path_of.tolist()]
    found = may_be_left(study, entry) & others[lifetimes.stack]
    return np.asarray(found & ~is_any(study.categories, (GRADIENT, OPTIMIZER_STATE)))


def made_by_call_underway(study: DeviceStudy, entry: int) -> BoolArray:
    """bool[stacks + 1]: whether it is of the call that the script's main function, or its module, has underway.

    That is of the same two outermost lines: what else that call has made.
    """
    script, last = study.loops.script, last_stack(study, entry)
    found = np.zeros(len(script.path_of) + 1, np.bool_)
    lines = () if last is None else _statement(script.paths[script.path_of[last]])[:OUTERMOST]
    if len(lines) == OUTERMOST:
        found[:-1] = [script.paths[path][:OUTERMOST] == lines for path in script.path_of.tolist()]
    return found


def calling_lines(study: DeviceStudy, entry: int, wanted: BoolArray | None = None) -> set[tuple[int, ...]]:
    """The lines of the script, with their callers, that have called Modules by `entry`.

    Args:
        study: of the device.
        entry: the instant.
        wanted: bool[stacks + 1], which count; None: all.
    """
    script, stacks = study.loops.script, study.history.trace.stack[: entry + 1]
    known = ascending(stacks[stacks >= 0])
    paths = ascending(script.path_of[known if wanted is None else known[wanted[known]]]).tolist()
    return {_statement(script.paths[path]) for path in paths if MODULE in script.paths[path]}


def call_begin(study: DeviceStudy, entry: int) -> int:
    """The entry from which on the innermost function of the script that is underway at `entry` has been called.

    Where its callers have made it go on from another line, that was before; 0 where no caller is known.
    """
    return _begin(study, entry, levels_left_out=1)


def statement_begin(study: DeviceStudy, entry: int) -> int:
    """The entry from which on the statement of the script that is underway at `entry` has run; 0 where none is known.

    In it a Module may have been called; what another statement of the same function has called is before it.
    """
    return _begin(study, entry, levels_left_out=0)


def _begin(study: DeviceStudy, entry: int, *, levels_left_out: int) -> int:
    """Since when the lines around `entry` have been the same, but for so many of the innermost ones."""
    last = last_stack(study, entry)
    if last is None:
        return 0
    script = study.loops.script
    lines = _statement(script.paths[script.path_of[last]])
    around = lines[: len(lines) - levels_left_out]
    elsewhere = np.ones(len(script.path_of) + 1, np.bool_)
    elsewhere[:-1] = [_statement(script.paths[path])[: len(around)] != around for path in script.path_of.tolist()]
    stacks = study.history.trace.stack[: entry + 1]
    mine = (stacks >= 0) & (script.thread[stacks] == MAIN)
    before = np.flatnonzero(mine & elsewhere[stacks])
    return int(before[-1]) + 1 if len(before) else 0


def _statement(path: tuple[int, ...]) -> tuple[int, ...]:
    """The lines of the script down to a Module's call."""
    return path[: path.index(MODULE)] if MODULE in path else path


def ended_function(study: DeviceStudy, entry: int) -> IntArray:
    """int64[stacks + 1]: the script's function that made it outside any Module's call, if it is over; else -1."""
    script = study.loops.script
    ended = np.full(len(script.path_of) + 1, -1, np.int64)
    last = last_stack(study, entry)
    if last is None:
        return ended
    function = script.function.tolist()
    underway = {function[place] for place in script.paths[script.path_of[last]] if place >= 0}
    for number, path in enumerate(script.path_of.tolist()):
        own = [place for place in script.paths[path] if place == MODULE or script.is_script[place]]
        if own and MODULE not in own and function[own[-1]] not in underway:
            ended[number] = function[own[-1]]
    return ended


def last_stack(study: DeviceStudy, entry: int) -> int | None:
    """The last stack of the program's own thread up to `entry`: autograd's threads have none of it."""
    stacks = study.history.trace.stack[: entry + 1]
    known = stacks[stacks >= 0]
    mine = known[study.loops.script.thread[known] == MAIN]
    return int(mine[-1]) if len(mine) else None
