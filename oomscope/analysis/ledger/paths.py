"""Stacks of a forward as calls of modules, one within another."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.run import Run
from oomscope.model import NO_STACK, FrameKind, frame_kind, package_path

Line: TypeAlias = tuple[str, int, str]
"""File, line and function."""
Part: TypeAlias = tuple[Line, ...]
"""The frames of one call, outermost first, down to where it calls the next module."""
Path: TypeAlias = tuple[Part, ...]

_CALL = ("_call_impl", "_wrapped_call_impl")


def module_of(path: Path) -> object:
    """The module that a path ends in, whichever of its lines it is at."""
    return (*path[:-1], path[-1][0][::2]) if path else ()


def paths(run: Run) -> dict[int, Path]:
    """For each stack of a forward its frames from the outside, cut at every call of a module."""
    stacks = run.study.snapshot.stacks
    found: dict[int, Path] = {}
    for stack in np.unique(run.stack[run.during(FORWARD)]).tolist():
        if stack == NO_STACK:
            continue
        parts: list[list[Line]] = [[]]
        for frame in reversed(stacks[stack]):
            if frame.name in _CALL:
                if parts[-1]:
                    parts.append([])
            elif frame_kind(frame.filename) is not FrameKind.CPP:
                parts[-1].append((package_path(frame.filename) or frame.filename, frame.line, frame.name))
        found[stack] = tuple(tuple(part) for part in parts if part)
    return found
