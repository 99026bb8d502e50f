"""The flame graph: live bytes by the whole stacks that allocated them, callers below their callees."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES
from oomscope.model import NO_STACK, FrameKind, StackTable, frame_kind
from oomscope.rendering.html.lifetime_keys import LifetimeKeys
from oomscope.rendering.html.percent import percent
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten

MOST_BOXES = 260
THIN = 0.035
LEAST_SHARE = 0.0015
ROW = 19


@dataclass(frozen=True, slots=True)
class Box:
    """One frame of the flame graph; `x` and `width` in per mille of a hundred (two decimals of a per cent)."""

    x: str
    width: str
    y: int
    label: str
    full: str
    bytes: int
    category: str
    depth: int
    thin: bool
    """Too narrow for words, until the reader zooms in."""


@dataclass(frozen=True, slots=True)
class Flame:
    """All boxes, with the height of the graph in pixels and the bytes of what was too narrow to draw."""

    boxes: tuple[Box, ...]
    height: int
    total: int
    hidden: int
    left_out: int


@dataclass(slots=True)
class _Node:
    bytes: int = 0
    by_category: dict[int, int] = field(default_factory=dict)
    children: dict[int, _Node] = field(default_factory=dict)


_FRAMEWORK = (FrameKind.TORCH, FrameKind.STANDARD, FrameKind.PLUMBING, FrameKind.OOMSCOPE)


def is_framework(filename: str) -> bool:
    """Whether a frame of this file is PyTorch's or Python's own, which a reader need not see at first."""
    return frame_kind(filename) in _FRAMEWORK


def flame(
    device: DeviceFindings, stacks: StackTable, keys: LifetimeKeys, shorten: Shorten, *, framework: bool = True
) -> Flame | None:
    """The flame graph of what is allocated at the instant of attribution; None where no stack is known.

    Args:
        device: the device.
        stacks: of the snapshot.
        keys: categories of its lifetimes.
        shorten: for file names.
        framework: whether frames of PyTorch and Python are shown.
    """
    root = _tree(device, stacks, keys, framework=framework)
    if not root.children:
        return None
    boxes: list[Box] = []
    hidden = _place(root, stacks, shorten, boxes)
    rows = max(box.depth for box in boxes) + 1
    left_out = device.at.allocated - root.bytes
    return Flame(tuple(boxes), rows * ROW, root.bytes, hidden, max(0, left_out))


def _tree(device: DeviceFindings, stacks: StackTable, keys: LifetimeKeys, *, framework: bool) -> _Node:
    history = device.history
    live = np.flatnonzero(history.lifetimes.allocated_at(device.at_entry) & (history.lifetimes.stack != NO_STACK))
    width = len(CATEGORIES)
    pair = history.lifetimes.stack[live].astype(np.int64) * width + keys.category[live]
    distinct, inverse = np.unique(pair, return_inverse=True)
    total = np.bincount(inverse, weights=history.size[live], minlength=len(distinct)).astype(np.int64)
    unseen = (FrameKind.CPP,) if framework else (FrameKind.CPP, *_FRAMEWORK)
    shown = [frame_kind(frame.filename) not in unseen for frame in stacks.frames]
    root = _Node()
    for key, count in zip(distinct.tolist(), total.tolist(), strict=True):
        stack, category = divmod(key, width)
        members = stacks.members[stacks.offsets[stack] : stacks.offsets[stack + 1]][::-1].tolist()
        node, path = root, [member for member in members if shown[member]]
        for member in [None, *path][:200] if path else ():
            if member is not None:
                node = node.children.setdefault(member, _Node())
            node.bytes += count
            node.by_category[category] = node.by_category.get(category, 0) + count
    return root


def _place(root: _Node, stacks: StackTable, shorten: Shorten, boxes: list[Box]) -> int:
    """Fill `boxes` with the widest ones, callers before their callees; the bytes of what was left out.

    No box is wider than its caller, so that taking the widest of all that are known leaves out none that is wider.
    """
    hidden = 0
    order = itertools.count()
    widest: list[tuple[int, int, int, int, int, _Node]] = []

    def add_children(node: _Node, start: int, depth: int) -> None:
        nonlocal hidden
        for member, child in sorted(node.children.items(), key=lambda item: -item[1].bytes):
            if child.bytes >= root.bytes * LEAST_SHARE:
                heappush(widest, (-child.bytes, next(order), start, depth, member, child))
            else:
                hidden += child.bytes
            start += child.bytes

    add_children(root, 0, 0)
    while widest and len(boxes) < MOST_BOXES:
        _, _, start, depth, member, node = heappop(widest)
        boxes.append(_box(start, depth, member, node, root.bytes, stacks, shorten))
        add_children(node, start, depth + 1)
    return hidden + sum(node.bytes for *_, node in widest)


def _box(start: int, depth: int, member: int, node: _Node, total: int, stacks: StackTable, shorten: Shorten) -> Box:
    frame = stacks.frames[member]
    category = max(node.by_category, key=lambda key: node.by_category[key])
    return Box(
        x=percent(start, total),
        width=percent(node.bytes, total),
        y=depth * ROW,
        label=f"{clean(frame.name, 60)} ({shorten(frame.filename)}:{frame.line})",
        full=f"{clean(frame.name, 120)} · {clean(frame.filename, 160)}:{frame.line}",
        bytes=node.bytes,
        category=CATEGORIES[category],
        depth=depth,
        thin=node.bytes < THIN * total,
    )
