"""How wide windows are at each stage of a transformer, in pixels of the image, and what lies in them: from one shape.

Of windows with w × w tokens, tables of relative places have (2w − 1)² rows, and a buffer says which of them each pair
of tokens looks up. The softmax over the scores then tells how many windows there are, and so what a side is padded to.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt

import numpy as np

from oomscope.analysis.labels.kinds import BUFFER, PARAMETER
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.plan.kinds import BATCH, SIDE, kind_of
from oomscope.analysis.plan.recordings import Recording
from oomscope.analysis.plan.requests.scores import softmaxes_by_name
from oomscope.analysis.whatif.extraction import by_request
from oomscope.frozen import frozen
from oomscope.model import NO_STACK, BoolArray, Frame, IntArray, package_path
from oomscope.model.arrays import FloatArray

MOST_TOKENS, MOST_HEADS = 32, 64
"""Along a side of a window; of a table."""
ITEMS = (4, 2)
PLACE = 8
"""Bytes of a number of a row."""
UNTOLD = 0.5
"""Of what no forward makes in the same size: so much may lie in windows."""


@frozen(eq=False)
class WindowStages:
    """Which windows each request may lie in.

    Attributes:
        side: the name of the parameter.
        width: int64[requests], of a window at its stage, in pixels.
        inside: float64[requests], the share of what is as large at its stage that lies in windows.
    """

    side: str
    width: IntArray
    inside: FloatArray

    def padded(self, side: int) -> FloatArray:
        """float64[requests]: how many times as much the windows of an image of this side hold as it has."""
        filled = -(-side // self.width) * self.width
        return np.asarray((filled / side) ** 2, np.float64)


def window_stages(recording: Recording) -> WindowStages | None:
    """The windows of a recording of one shape; None where it has none, or pads them itself."""
    if len(recording.shapes) != 1:
        return None
    named = {kind_of(name, recording.shapes[0]): name for name in recording.shapes[0]}
    if BATCH not in named or SIDE not in named:
        return None
    batch, side = (recording.shapes[0][named[kind]] for kind in (BATCH, SIDE))
    row, size = recording.subject.extraction.row, recording.program.size
    category = by_request(recording.study.categories.astype(np.int64), row)
    parameters, buffers = (set(size[category == kind].tolist()) for kind in (PARAMETER, BUFFER))
    phase = by_request(recording.study.phases.astype(np.int64), row, FORWARD)
    stack = by_request(recording.study.history.lifetimes.stack.astype(np.int64), row, NO_STACK)
    softmaxes = softmaxes_by_name(recording.study.snapshot.stacks, stack) & (phase == FORWARD) & (stack >= 0)
    for tokens, heads in _windows(parameters, buffers):
        widths = _widths(size[softmaxes], heads, batch * tokens * tokens, side)
        if widths:
            scores = np.isin(size, list(widths)) & (softmaxes | (phase == BACKWARD))
            near = _nearest(np.flatnonzero(scores), len(size))
            width = np.array([widths[one] for one in size[near].tolist()], np.int64)
            within = _within(recording, stack, stack[scores & softmaxes])
            return WindowStages(named[SIDE], width, _shares(size, width, within, (phase == FORWARD) & (stack >= 0)))
    return None


def _windows(parameters: set[int], buffers: set[int]) -> Iterable[tuple[int, list[int]]]:
    """How many tokens a window may have, and how many heads its tables."""
    for along in range(2, MOST_TOKENS + 1):
        rows = (2 * along - 1) ** 2
        for item in ITEMS:
            heads = [one for one in range(1, MOST_HEADS + 1) if rows * one * item in parameters]
            if heads and PLACE * along**4 in buffers:
                yield along * along, heads


def _widths(made: IntArray, heads: list[int], each: int, side: int) -> dict[int, int]:
    """By the bytes of scores, how wide a window is; nothing where they are no whole numbers of windows.

    A stage that has fewer windows has more heads.
    """
    for item in ITEMS:
        sizes = sorted({one for one in made.tolist() if one % (each * item) == 0}, reverse=True)
        if not sizes or len(sizes) != len(heads):
            continue
        counts = [one // (each * item * of) for one, of in zip(sizes, heads, strict=True)]
        along = [isqrt(count) for count in counts]
        squares = all(one * one == count for one, count in zip(along, counts, strict=True))
        if squares and all(one and side % one == 0 for one in along):
            return {size: side // one for size, one in zip(sizes, along, strict=True)}
    return {}


def _nearest(rows: IntArray, count: int) -> IntArray:
    """int64[requests]: which of `rows` is nearest to each."""
    every = np.arange(count)
    behind = np.clip(np.searchsorted(rows, every), 1, max(len(rows) - 1, 1))
    before, after = rows[behind - 1], rows[np.minimum(behind, len(rows) - 1)]
    return np.where(every - before <= after - every, before, after)


def _within(recording: Recording, stack: IntArray, scores: IntArray) -> BoolArray:
    """bool[requests]: which are made by a function that makes scores, or by what it calls."""
    stacks = recording.study.snapshot.stacks
    owners = {_owner(stacks[one]) for one in np.unique(scores).tolist()} - {None}
    inside = [any((frame.filename, frame.name) in owners for frame in stacks[one]) for one in range(len(stacks))]
    found: BoolArray = np.array([*inside, False])[stack]
    return found


def _owner(frames: Iterable[Frame]) -> tuple[str, str] | None:
    """File and function of the innermost frame that is not torch's own."""
    own = (one for one in frames if not (package_path(one.filename) or "").startswith("torch/"))
    return next(((one.filename, one.name) for one in own), None)


def _shares(size: IntArray, width: IntArray, within: BoolArray, forward: BoolArray) -> FloatArray:
    """What a forward makes lies in windows or does not; what else is as large, as much of it as of that."""
    _, same = np.unique(np.stack([size, width], axis=1), axis=0, return_inverse=True)
    same = same.reshape(-1)
    made = np.bincount(same[forward], minlength=len(size))
    inside = np.bincount(same[forward & within], minlength=len(size))
    share = np.where(made > 0, inside / np.maximum(made, 1), UNTOLD)[same]
    return np.where(forward, within, share).astype(np.float64)
