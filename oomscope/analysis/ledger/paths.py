"""The stacks of a forward as calls of modules."""

from __future__ import annotations

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.plan.requests.calls import Part, Path, module_of, path_of
from oomscope.model import NO_STACK
from oomscope.model.ordering import ascending

__all__ = ["Part", "Path", "module_of", "paths"]


def paths(run: Run) -> dict[int, Path]:
    """For each stack of a forward its frames from the outside, cut at every call of a module. Found once."""
    return run.study.once("paths of the ledger", lambda: _paths(run))


def _paths(run: Run) -> dict[int, Path]:
    stacks = run.study.snapshot.stacks
    used = ascending(run.stack[run.during(FORWARD)]).tolist()
    return {stack: path_of(stacks[stack]) for stack in used if stack != NO_STACK}
