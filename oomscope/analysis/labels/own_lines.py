"""The program's own lines, as the frames of a request tell them."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.model import Frame, FrameKind, frame_kind

_BELOW = (FrameKind.CPP, FrameKind.TORCH)


def own_line(frames: Sequence[Frame]) -> tuple[str, int] | None:
    """File and number of the innermost line outside torch."""
    return next(iter(own_lines(frames)), None)


def own_lines(frames: Sequence[Frame]) -> tuple[tuple[str, int], ...]:
    """File and number of each line outside torch, the innermost first."""
    return tuple((frame.filename, frame.line) for frame in frames if frame_kind(frame.filename) not in _BELOW)
