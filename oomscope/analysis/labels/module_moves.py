"""What `Module.to` and its like moved: parameters, their gradients, or buffers.

`Module._apply` goes through the children of a module, then calls the same function for each parameter, for the
gradient of each, and for each buffer: three lines of one file. Snapshots hold no source, and the lines change with
every release; but parameters come first, and a gradient follows its own parameter and is as large.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.lifetime_facts import LifetimeFacts
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.model import BoolArray, IntArray

_PARAMETERS_WITHIN = 40
"""Lines behind the recursive call. In all releases (1.13 to 2.15) parameters are moved 22 to 32 lines behind it, and
gradients and buffers 50 and more. Asked only where a single line is seen, which nothing can be compared with."""
_NEARLY_ALL = 0.9
"""Of the bytes that a line moves; the rest may be gradients of parameters that were on the device before."""


def find_moves(facts: LifetimeFacts, recursive_line: int) -> tuple[BoolArray, BoolArray]:
    """Which rows are gradients, and which are buffers, that `Module._apply` moved.

    Args:
        facts: of the device.
        recursive_line: where `_apply` calls itself for the children; -1 unknown.
    """
    nothing = np.zeros(len(facts), np.bool_)
    moved = np.flatnonzero((facts.apply_line >= 0) & (facts.role == Role.LOAD))
    line = facts.apply_line[moved]
    lines = [one for one in np.unique(line).tolist() if one != recursive_line]
    if not lines:
        return nothing, nothing
    if len(lines) == 1:
        far = recursive_line >= 0 and lines[0] - recursive_line > _PARAMETERS_WITHIN
        return nothing, nothing if not far else np.asarray((facts.apply_line == lines[0]) & (facts.role == Role.LOAD))
    gradient, buffer = nothing.copy(), nothing.copy()
    follows = _follows_its_like(facts, moved, lines[0])
    for number, one in enumerate(lines[1:]):
        here = line == one
        share = float(facts.bytes[moved[here & follows]].sum()) / max(float(facts.bytes[moved[here]].sum()), 1.0)
        # Only one line moves gradients: the first behind that of the parameters.
        (gradient if number == 0 and share >= _NEARLY_ALL else buffer)[moved[here]] = True
    return gradient, buffer


def find_gradient_buffers(facts: LifetimeFacts) -> BoolArray:
    """Which rows are buffers for the gradients of many parameters, as Megatron makes them.

    The same constructor makes the buffer of the parameters first where it makes both, on a line above.
    """
    marked = facts.marked(Mark.GRADIENT_BUFFER)
    last = int(facts.site_line[marked].max(initial=-1))
    return np.asarray(marked & (facts.site_line == last))


def _follows_its_like(facts: LifetimeFacts, moved: IntArray, parameters: int) -> BoolArray:
    """Which of the `moved` rows come directly behind one of the same size that the line `parameters` moved."""
    order = np.argsort(facts.lifetimes.born[moved], kind="stable")
    ordered = moved[order]
    follows = np.zeros(len(moved), np.bool_)
    before, behind = ordered[:-1], ordered[1:]
    follows[order[1:]] = (facts.apply_line[before] == parameters) & (facts.bytes[before] == facts.bytes[behind])
    return follows
