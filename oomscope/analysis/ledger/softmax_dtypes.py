"""Whether a program tells torch's own softmaxes their dtype: which of two lines of the function is in the stack.

``F.softmax(scores, dim=-1, dtype=torch.float32)`` leaves no trace of its own in a recording of float32, but `softmax`
and `log_softmax` have a line each for calls with a dtype and for calls without one, the former two lines behind the
latter. The lines are those of the releases' own torch/nn/functional.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, Frame, package_path

_WITHOUT = {
    "softmax": (1843, 1856, 1858, 1885, 1888, 2133, 2137, 2140, 2157, 2159, 2207, 2213),
    "log_softmax": (1932, 1945, 1947, 1974, 1977, 2241, 2245, 2248, 2265, 2267, 2315, 2321),
}
"""By function, the lines of calls without a dtype, of torch 2.0, 2.1, 2.2, 2.3, 2.4, 2.9, 2.8, 2.5 to 2.7, 2.10, 2.11
and 2.12, 2.13, and 2.14."""
_BEHIND = 2
"""Lines from a call without a dtype to the one with it."""


def with_dtype(run: Run) -> BoolArray:
    """bool[requests]: what softmaxes make that are told a dtype for certain, which is float32 wherever it was seen.

    Of torch 2.1 and 2.10 the line is also that of calls without one in a later release; it tells only where the stacks
    hold both lines.
    """
    stacks = run.study.snapshot.stacks
    seen = {(name, line) for frame in stacks.frames if (name := _function(frame)) for line in (frame.line,)}
    told = [_is_told(stacks[one], seen) for one in range(len(stacks))]
    return np.array([*told, False])[run.stack]


def _is_told(frames: Sequence[Frame], seen: set[tuple[str, int]]) -> bool:
    named = [(name, frame.line) for frame in frames[:2] if (name := _function(frame))]
    return any(_has_dtype(name, line) or (name, line - _BEHIND) in seen for name, line in named)


def _has_dtype(name: str, line: int) -> bool:
    return line - _BEHIND in _WITHOUT[name] and line not in _WITHOUT[name]


def _function(frame: Frame) -> str | None:
    """The name of a softmax of torch's own; None for every other frame."""
    own = frame.name in _WITHOUT and package_path(frame.filename) == "torch/nn/functional.py"
    return frame.name if own else None
