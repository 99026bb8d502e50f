"""The program's own lines, as the frames of a request tell them."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.model import Frame, FrameKind, frame_kind

_BELOW = (FrameKind.CPP, FrameKind.TORCH)


def own_line(frames: Sequence[Frame]) -> tuple[str, int] | None:
    """File and number of the innermost line outside torch."""
    own = (one for one in frames if frame_kind(one.filename) not in _BELOW)
    return next(((frame.filename, frame.line) for frame in own), None)
