"""Variables of suspended generators and coroutines that they will not read again when they go on."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from oomscope.recording.census.holding import Holding
from oomscope.recording.census.idle import Idle
from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.liveness import uses_after
from oomscope.recording.census.paths import SUSPENDABLE, frame_of
from oomscope.recording.census.roots import local_variables


def find_suspended(holding: Holding, running: Iterable[FrameType]) -> list[Idle]:
    """Such variables in the graph; `running` frames go on by themselves, and are none."""
    ignored = set(map(id, running))
    return [one for node, item in enumerate(holding.objects) for one in _unread_of(holding, node, item, ignored)]


def place_of_suspended(holding: Holding, one: Idle) -> FrameType | None:
    """The frame that a variable of `find_suspended` is in."""
    return frame_of(holding.objects[one.owner])


def _unread_of(holding: Holding, node: int, item: Any, ignored: set[int]) -> Iterator[Idle]:
    frame = frame_of(item) if is_a(item, SUSPENDABLE) else None
    if frame is None or id(frame) in ignored or frame.f_lasti < 0:
        return  # it has ended, runs, or has yet to begin
    uses = uses_after(frame.f_code, frame.f_lasti)
    if uses is None:
        return
    read, variables = {one.name for one in uses}, local_variables(frame)
    shared = {*frame.f_code.co_cellvars, *frame.f_code.co_freevars}
    unread = {name: value for name, value in variables.items() if name not in read and name not in shared}
    named = Counter(map(id, unread.values()))
    known = Counter(map(id, [*gc.get_referents(item), *_of_frame(holding, frame)]))
    parents = [node, *([holding.numbers[id(frame)]] if id(frame) in holding.numbers else [])]
    for name, value in unread.items():
        child = holding.numbers.get(id(value))
        parent = next((one for one in parents if child in holding.children[one]), None)
        # A loop that goes on has its iterator on the stack, whatever becomes of its name.
        if child is not None and parent is not None and known[id(value)] <= named[id(value)]:
            yield Idle(node, parent, child, name)


def _of_frame(holding: Holding, frame: FrameType) -> list[Any]:
    """What the frame refers to, where it is an object of the collector's own."""
    return gc.get_referents(frame) if id(frame) in holding.numbers else []
