"""Who calls a line, by the stacks of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import FrameKind, frame_kind


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
