"""Who calls a line, by the stacks of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import FrameKind, IntArray, frame_kind

MOST = 0.5
"""Of the bytes: the line under which more than this was made is the one."""


def called_at(study: DeviceStudy, lines: Sequence[Location]) -> Location | None:
    """The one line of the program from which the only one of `lines` was reached; None for none or several."""
    if len(lines) != 1:
        return None
    (line,) = lines
    found = {
        Location(outer.filename, outer.line, outer.name)
        for stack in study.snapshot.stacks
        for frame, outer in pairwise(stack)
        if (frame.filename, frame.line) == (line.file, line.line)
    }
    own = [one for one in found if frame_kind(one.file) is FrameKind.OWN]
    return own[0] if len(own) == len(found) == 1 else None


def made_under(study: DeviceStudy, rows: IntArray, lines: Sequence[Location]) -> Location | None:
    """That one of several `lines` that was running when most bytes of the lifetimes `rows` were allocated."""
    if len(lines) < 2 or not len(rows):
        return None
    size = study.history.size[rows]
    stacks, which = np.unique(study.history.lifetimes.stack[rows], return_inverse=True)
    made = np.bincount(which, weights=size)
    running = [
        {(frame.filename, frame.line) for frame in study.snapshot.stacks[stack]} if stack >= 0 else set()
        for stack in stacks.tolist()
    ]
    for line in lines:
        under = [(line.file, line.line) in frames for frames in running]
        if made[under].sum() > MOST * size.sum():
            return line
    return None
