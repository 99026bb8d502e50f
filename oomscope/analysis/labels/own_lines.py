"""The program's own lines, as the frames of a request tell them."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.model import Frame, FrameKind, frame_kind, package_path


def own_line(frames: Sequence[Frame]) -> tuple[str, int] | None:
    """File and number of the innermost line outside torch."""
    own = (one for one in frames if frame_kind(one.filename) is not FrameKind.CPP and not is_of_torch(one))
    return next(((frame.filename, frame.line) for frame in own), None)


def is_of_torch(frame: Frame) -> bool:
    """Whether a frame is one of torch's own files."""
    return (package_path(frame.filename) or "").startswith("torch/")
