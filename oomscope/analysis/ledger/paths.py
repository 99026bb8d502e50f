"""The stacks of a forward as calls of modules; of functions, where a program has no modules."""

from __future__ import annotations

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.requests.calls import Part, Path, functions_of, module_of, path_of
from oomscope.model import NO_STACK
from oomscope.model.ordering import ascending

__all__ = ["Part", "Path", "has_modules", "module_of", "paths"]


def paths(run: Run) -> dict[int, Path]:
    """For each stack of a forward its frames from the outside, cut at every call of a module. Found once.

    Where no forward calls any, its functions call one another as modules would.
    """
    return run.study.once("paths of the ledger", lambda: _paths(run))


def has_modules(run: Run) -> bool:
    """Whether forwards call modules; else functions take their place in `paths`."""
    return run.study.once("modules of the ledger", lambda: any(len(path) > 1 for path in _of_modules(run).values()))


def _paths(run: Run) -> dict[int, Path]:
    found = _of_modules(run)
    if has_modules(run):
        return found
    return {stack: functions_of(run.study.snapshot.stacks[stack]) for stack in found}


def _of_modules(run: Run) -> dict[int, Path]:
    stacks = run.study.snapshot.stacks
    used = ascending(run.stack[run.during(FORWARD)]).tolist()
    return {stack: path_of(stacks[stack]) for stack in used if stack != NO_STACK}
