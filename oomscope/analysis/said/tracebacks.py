"""Lines of code out of a traceback that torch formatted: the forward behind a backward, the source behind FX code."""

from __future__ import annotations

import re
from collections.abc import Iterable

from oomscope.analysis.records import Location
from oomscope.model import Frame

_LINE = re.compile(r'^[ \t]{0,200}File "([^"\n]{1,4096})", line (\d{1,9}), in ([^\n]{1,1000})$', re.MULTILINE)
FX_TRACE = "fx_original_trace"
"""The key of a frame under which ``augment_with_fx_traces`` puts the stack of the line that the code was made from."""
_LONGEST = 1 << 16


def frames_in(texts: Iterable[str]) -> tuple[Frame, ...]:
    """The frames of a formatted traceback, innermost first, as torch's own stacks stand.

    Args:
        texts: each one or several lines of ``traceback.format_stack``, outermost first.
    """
    found: list[Frame] = []
    for text in texts:
        found += (Frame(match[1], int(match[2]), match[3].rstrip()) for match in _LINE.finditer(text[:_LONGEST]))
    return tuple(reversed(found))


def original_frame(frame: Frame) -> Frame:
    """The line that a generated frame was made from, where torch says it; else `frame` itself."""
    for key, text in frame.extra:
        if key == FX_TRACE and (frames := frames_in([text])):
            return frames[0]
    return frame


def location_of(frame: Frame) -> Location:
    """`frame` as a place."""
    return Location(frame.filename, frame.line, frame.name)
