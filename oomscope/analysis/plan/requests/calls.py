"""Stacks as calls of modules, one within another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from oomscope.model import Frame, FrameKind, frame_kind, package_path

Line: TypeAlias = tuple[str, int, str]
"""File, line and function."""
Part: TypeAlias = tuple[Line, ...]
"""The frames of one call, outermost first, down to where it calls the next module."""
Path: TypeAlias = tuple[Part, ...]

_CALL = ("_call_impl", "_wrapped_call_impl")


def path_of(frames: Sequence[Frame]) -> Path:
    """The frames of a stack from the outside, cut at every call of a module."""
    parts: list[list[Line]] = [[]]
    for frame in reversed(frames):
        if frame.name in _CALL:
            if parts[-1]:
                parts.append([])
        elif frame_kind(frame.filename) is not FrameKind.CPP:
            parts[-1].append((package_path(frame.filename) or frame.filename, frame.line, frame.name))
    return tuple(tuple(part) for part in parts if part)


def functions_of(frames: Sequence[Frame]) -> Path:
    """The frames of a stack from the outside, each a call of its own, where functions take the place of modules."""
    return tuple(
        ((package_path(frame.filename) or frame.filename, frame.line, frame.name),)
        for frame in reversed(frames)
        if frame_kind(frame.filename) is not FrameKind.CPP
    )


def module_of(path: Path) -> object:
    """The module that a path ends in, whichever of its lines it is at."""
    return (*path[:-1], path[-1][0][::2]) if path else ()
