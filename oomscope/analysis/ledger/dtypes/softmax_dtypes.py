"""Whether a program tells torch's own softmaxes their dtype: which of two lines of the function is in the stack.

``F.softmax(scores, dim=-1, dtype=torch.float32)`` leaves no trace of its own in a recording of float32, but `softmax`
and `log_softmax` have a line each for calls with a dtype and for calls without one, the former two lines behind the
latter. The lines are those of the releases' own torch/nn/functional.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, Frame, FrameKind, frame_kind, package_path

_WITHOUT = {
    "softmax": (1843, 1856, 1858, 1885, 1888, 2133, 2137, 2140, 2157, 2159, 2207, 2213),
    "log_softmax": (1932, 1945, 1947, 1974, 1977, 2241, 2245, 2248, 2265, 2267, 2315, 2321),
}
"""By function, the lines of calls without a dtype: of torch 2.0, 2.1, 2.2, 2.3, 2.4, 2.9, 2.8, 2.5 to 2.7, 2.10, 2.11
and 2.12, 2.13, and 2.14."""
_BEHIND = 2
"""Lines from a call without a dtype to the one with it."""
_OF_THE_EARLIER = {1518, 1776}
"""Lines of `_wrapped_call_impl` in torch 2.1 and 2.10, of which the next release has its line without where they have
that with a dtype."""


def with_dtype(run: Run) -> BoolArray:
    """bool[requests]: what softmaxes make that are told a dtype, which is float32 wherever it was seen."""
    return _told(run, has_dtype=True)


def without_dtype(run: Run) -> BoolArray:
    """bool[requests]: what softmaxes make that are told none; their argument may have been cast."""
    return _told(run, has_dtype=False)


def _told(run: Run, *, has_dtype: bool) -> BoolArray:
    stacks = run.study.snapshot.stacks
    earlier = any(frame.name == "_wrapped_call_impl" and frame.line in _OF_THE_EARLIER for frame in stacks.frames)
    told = [_has_dtype(stacks[one], earlier=earlier) is has_dtype for one in range(len(stacks))]
    return np.array([*told, False])[run.stack]


def _has_dtype(frames: Sequence[Frame], *, earlier: bool) -> bool | None:
    """Whether the softmax of a stack is told a dtype; None where it has none, or is of an unknown release."""
    python = [frame for frame in frames if frame_kind(frame.filename) is not FrameKind.CPP]
    for name, line in _softmaxes(python[:2]):
        with_one, without = line - _BEHIND in _WITHOUT[name], line in _WITHOUT[name]
        if with_one or without:
            return with_one and (earlier or not without)
    return None


def _softmaxes(frames: Iterable[Frame]) -> list[tuple[str, int]]:
    own = [one for one in frames if one.name in _WITHOUT and package_path(one.filename) == "torch/nn/functional.py"]
    return [(one.name, one.line) for one in own]
