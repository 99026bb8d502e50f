"""What `Module.to` and its like moved: parameters, their gradients, or buffers.

`Module._apply` goes through the children of a module, then calls the same function for each parameter, for the
gradient of each, and for each buffer: three lines of one file. Snapshots hold no source, and the lines change with
every release; but parameters come first, and a gradient follows its own parameter and is as large. Where the order
of blocks is not recorded, their sizes are compared as a whole; and where all three lines show, the middle one is that
of the gradients.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.lifetime_facts import LifetimeFacts
from oomscope.analysis.labels.size_matching import LEAST_SIZES, shared_bytes
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending

_PARAMETERS_WITHIN = 40
"""Lines behind the recursive call. In all releases (1.13 to 2.15) parameters are moved 22 to 32 lines behind it, and
gradients and buffers 50 and more. Asked only where a single line is seen, which nothing can be compared with."""
_NEARLY_ALL = 0.9
"""Of the bytes that a line moves; the rest may be gradients of parameters that were on the device before."""
_LINES = 3
"""One each for parameters, gradients and buffers."""


def find_moves(facts: LifetimeFacts, recursive_line: int) -> tuple[BoolArray, BoolArray]:
    """Which rows are gradients, and which are buffers, that `Module._apply` moved.

    Args:
        facts: of the device.
        recursive_line: where `_apply` calls itself for the children; -1 unknown.
    """
    nothing = np.zeros(len(facts), np.bool_)
    moved = np.flatnonzero((facts.apply_line >= 0) & (facts.role == Role.LOAD))
    line = facts.apply_line[moved]
    lines = [one for one in ascending(line).tolist() if one != recursive_line]
    if not lines:
        return nothing, nothing
    if len(lines) == 1:
        far = recursive_line >= 0 and lines[0] - recursive_line > _PARAMETERS_WITHIN
        return nothing, nothing if not far else np.asarray((facts.apply_line == lines[0]) & (facts.role == Role.LOAD))
    gradient, buffer = nothing.copy(), nothing.copy()
    # Only one line moves gradients: the first behind that of the parameters.
    second = moved[line == lines[1]]
    (gradient if _moves_gradients(facts, moved, lines) else buffer)[second] = True
    buffer[moved[np.isin(line, lines[2:])]] = True
    return gradient, buffer


def find_gradient_buffers(facts: LifetimeFacts) -> BoolArray:
    """Which rows are buffers for the gradients of many parameters, as Megatron makes them.

    The same constructor makes the buffer of the parameters first where it makes both, on a line above.
    """
    marked = facts.marked(Mark.GRADIENT_BUFFER)
    last = int(facts.site_line[marked].max(initial=-1))
    return np.asarray(marked & (facts.site_line == last))


def _moves_gradients(facts: LifetimeFacts, moved: IntArray, lines: list[int]) -> bool:
    """Whether the second line moved gradients: they follow those of the first, and the third moves buffers.

    Where no entry tells the order, they are gradients if there are as many of each size. Buffers are some of the sizes
    of parameters at most, as the statistics of a normalization are.
    """
    if len(lines) == _LINES:
        return True
    first, second = (moved[facts.apply_line[moved] == line] for line in lines)
    recorded = second[~facts.before[second]]
    if not len(recorded):
        size, model = facts.bytes[second], facts.bytes[first]
        is_varied = len(ascending(size)) >= LEAST_SIZES
        return is_varied and shared_bytes(size, model) >= _NEARLY_ALL * max(int(size.sum()), int(model.sum()))
    follows = facts.bytes[recorded[np.isin(recorded, _behind_its_like(facts, moved, lines[0]))]]
    return int(follows.sum()) >= _NEARLY_ALL * max(int(facts.bytes[recorded].sum()), 1)


def _behind_its_like(facts: LifetimeFacts, moved: IntArray, parameters: int) -> IntArray:
    """Which of the `moved` rows come directly behind one of the same size that the line `parameters` moved."""
    ordered = moved[~facts.before[moved]]
    ordered = ordered[np.argsort(facts.lifetimes.born[ordered], kind="stable")]
    before, behind = ordered[:-1], ordered[1:]
    follows = (facts.apply_line[before] == parameters) & (facts.bytes[before] == facts.bytes[behind])
    return np.asarray(behind[follows])
