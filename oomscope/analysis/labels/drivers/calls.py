"""Which call of a function, or of a module's forward, a block was made in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray, Frame, IntArray
from oomscope.model.ordering import ascending


def calls(live: LiveBlocks, wanted: BoolArray, *, whole_module: bool) -> IntArray:
    """A number for the call that each wanted block's site stands in; -1 where there is no site, or no module around it.

    Args:
        live: the live blocks.
        wanted: bool[blocks].
        whole_module: whether the call of the module's forward around the site is meant, instead of its function's.
    """
    number: dict[tuple[object, ...], int] = {}
    sites, stacks = live.study.sites, live.study.snapshot.stacks
    of_stack = np.full(len(stacks) + 1, -1, np.int64)
    for stack in ascending(live.stack[wanted & (live.stack >= 0)]).tolist():
        site = sites.location(int(sites.site_of[stack]))
        frames = stacks[stack]
        for level, frame in enumerate(frames):
            if site is not None and (frame.filename, frame.line, frame.name) == (site.file, site.line, site.function):
                end = _forward_around(frames, level) if whole_module else level
                if end is not None:
                    call = (frames[end].filename, frames[end].name, frames[end + 1 :])
                    of_stack[stack] = number.setdefault(call, len(number))
                break
    return np.asarray(of_stack[live.stack])


def _forward_around(frames: Sequence[Frame], level: int) -> int | None:
    """The frame of the module's forward that the frame `level` runs in; None outside any module."""
    for outer in range(level, len(frames) - 1):
        if frames[outer + 1].name.rpartition(".")[2] == "_call_impl":
            return outer
    return None
