"""The flame graph: live bytes by the whole stacks that allocated them, callers below their callees."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES
from oomscope.frozen import frozen
from oomscope.model import Frame, FrameKind, IntArray, StackTable, frame_kind
from oomscope.model.arrays import FloatArray
from oomscope.rendering.html.lifetime_keys import LifetimeKeys
from oomscope.rendering.html.percent import percent
from oomscope.rendering.html.stack_tree import ROOT, StackTree, stack_tree, stack_use
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten

MOST_BOXES = 260
MOST_LATER = 200
"""Boxes of which nothing worth drawing is live at the instant of attribution, for other instants."""
THIN = 0.035
WIDE = 1164
"""Pixels of the whole width on a screen of 1280; the script fits labels to another one where they are laid out anew."""
LETTER = 6.4
"""Pixels of a letter of a label, about."""
LEAST_SHARE = 0.0015
LEAST_LATER = 0.01
ROW = 19


@frozen
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


@frozen(eq=False)
class Flame:
    """What is drawn at the instant of attribution, and what the script needs to draw other instants.

    Attributes:
        boxes: all that is drawn.
        height: of the graph with the boxes of other instants, in pixels.
        total: bytes of the whole width.
        hidden: bytes beneath frames that are too narrow to draw.
        left_out: bytes of which no frame is known.
        later: the boxes that are drawn at other instants alone, numbered on from `boxes`.
        parents: the number of the box that called each; -1 for the outermost.
        key: int64[lifetimes]: twice the number of the innermost box that each is in, and 1 more where a frame of it is
            not drawn; the number after the last box stands for none of them (of a stack, or, without the 1, of none).
    """

    boxes: tuple[Box, ...]
    height: int
    total: int
    hidden: int
    left_out: int
    later: tuple[Box, ...]
    parents: tuple[int, ...]
    key: IntArray


_FRAMEWORK = (FrameKind.TORCH, FrameKind.STANDARD, FrameKind.PLUMBING, FrameKind.OOMSCOPE)


def is_framework(filename: str) -> bool:
    """Whether a frame of this file is PyTorch's or Python's own, which a reader need not see at first."""
    return frame_kind(filename) in _FRAMEWORK


def full_name(frame: Frame, shorten: Shorten) -> str:
    """A frame as the graph tells it on hover: with the whole path, where the file is one of the program's own."""
    file = shorten(frame.filename) if is_framework(frame.filename) else clean(frame.filename, 160)
    return f"{clean(frame.name, 120)} · {file}:{frame.line}"


def flames(
    device: DeviceFindings, stacks: StackTable, keys: LifetimeKeys, shorten: Shorten, most_later: int = MOST_LATER
) -> tuple[Flame | None, Flame | None]:
    """The flame graph to begin with, and the one with frames of PyTorch and Python where that is another.

    Args:
        device: the device; what is drawn is allocated on it at the instant of attribution.
        stacks: of the snapshot.
        keys: categories of its lifetimes.
        shorten: for file names.
        most_later: boxes that are drawn only at other instants.
    """
    use = stack_use(device)
    own, every = (
        flame(device, stack_tree(device, stacks, keys, use, (FrameKind.CPP, *hidden)), stacks, shorten, most_later)
        for hidden in (_FRAMEWORK, ())
    )
    if own is None or every is None:
        return every, None
    return own, every if every.boxes != own.boxes else None


def flame(
    device: DeviceFindings, tree: StackTree, stacks: StackTable, shorten: Shorten, most_later: int
) -> Flame | None:
    """One flame graph; None where nothing that is live at the instant of attribution has a frame in `tree`."""
    total = int(tree.bytes[ROOT])
    if not total:
        return None
    drawn = _worth_drawing(tree, tree.bytes / total, LEAST_SHARE, MOST_BOXES)
    later = _worth_drawing(tree, tree.highest, LEAST_LATER, most_later, known=drawn)
    painter = _Boxes(tree, total, stacks.frames, shorten)
    boxes = painter.boxes(drawn)
    rest = painter.boxes(later)
    number = {node: at for at, node in enumerate([*drawn, *later])}
    return Flame(
        boxes=boxes,
        height=(max(box.depth for box in (*boxes, *rest)) + 1) * ROW,
        total=total,
        hidden=_beneath(tree, drawn),
        left_out=max(0, device.at.allocated - total),
        later=rest,
        parents=tuple(number.get(tree.parent[node], -1) for node in number),
        key=_keys(tree, number),
    )


def for_script(flames: Sequence[Flame]) -> dict[str, Any]:
    """What the script needs to draw other instants: of each graph who called each box, and the boxes to come."""
    frames: dict[str, int] = {}
    graphs = [
        {
            "parents": list(one.parents),
            "later": [[box.depth, frames.setdefault(box.full, len(frames))] for box in one.later],
        }
        for one in flames
    ]
    return {"graphs": graphs, "frames": list(frames)}


def _label(frame: Frame, room: float) -> str:
    """What is written on a box of so many pixels: its function and line, or as much of that as fits."""
    name, most = clean(frame.name, 60), int((room - 6) / LETTER)
    file = re.split(r"[/\\]", clean(frame.filename, 160))[-1]
    whole = f"{name} ({file}:{frame.line})"
    fitting = (text for text in (whole, f"{name} :{frame.line}", name) if len(text) <= most)
    return next(fitting, f"{name[: max(most - 1, 1)]}…")


def _worth_drawing(tree: StackTree, share: FloatArray, least: float, most: int, known: Sequence[int] = ()) -> list[int]:
    """The nodes with the largest shares of all, callers before their callees, without those that are drawn already.

    No box is wider than its caller, so that taking the widest of all that are known leaves out none that is wider.
    """
    found: list[int] = []
    widest: list[tuple[float, int, int]] = []
    order, there = itertools.count(), {ROOT, *known}

    def add_children(node: int) -> None:
        for child in tree.children[node]:
            if child not in there and share[child] >= least:
                heappush(widest, (-share[child], next(order), child))

    for node in (ROOT, *known):
        add_children(node)
    while widest and len(found) < most:
        *_, node = heappop(widest)
        found.append(node)
        add_children(node)
    return found


def _beneath(tree: StackTree, drawn: Sequence[int]) -> int:
    """Bytes at the instant of attribution beneath frames that are not drawn."""
    there = {ROOT, *drawn}
    return sum(int(tree.bytes[child]) for node in there for child in tree.children[node] if child not in there)


def _keys(tree: StackTree, number: dict[int, int]) -> IntArray:
    none = 2 * len(number)
    key_of = [none + 1]
    for node in range(1, len(tree.frame)):
        own = number.get(node)
        key_of.append(2 * own if own is not None else key_of[tree.parent[node]] | 1)
    return np.array([*key_of, none], np.int64)[tree.leaf]  # a leaf of -1 takes the last


class _Boxes:
    """Makes the boxes: at the instant of attribution each beneath its caller, the widest first."""

    def __init__(self, tree: StackTree, total: int, frames: Sequence[Frame], shorten: Shorten) -> None:
        self.tree, self.total, self.frames, self.shorten = tree, total, frames, shorten
        self._place = {ROOT: (0, -1)}

    def boxes(self, nodes: Sequence[int]) -> tuple[Box, ...]:
        """A box for each node, all callers being among them or those before."""
        return tuple(self._box(node) for node in nodes)

    def _box(self, node: int) -> Box:
        start, depth = self._placed(node)
        frame, count = self.frames[self.tree.frame[node]], int(self.tree.bytes[node])
        return Box(
            x=percent(start, self.total),
            width=percent(count, self.total),
            y=depth * ROW,
            label=_label(frame, WIDE * count / self.total),
            full=full_name(frame, self.shorten),
            bytes=count,
            category=CATEGORIES[int(self.tree.category[node])],
            depth=depth,
            thin=count < THIN * self.total,
        )

    def _placed(self, node: int) -> tuple[int, int]:
        """Bytes to the left of a node, and its depth."""
        if node not in self._place:
            caller = self.tree.parent[node]
            start, depth = self._place[caller]
            for child in sorted(self.tree.children[caller], key=lambda child: -self.tree.bytes[child]):
                self._place[child] = start, depth + 1
                start += int(self.tree.bytes[child])
        return self._place[node]
